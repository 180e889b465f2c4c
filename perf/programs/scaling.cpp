// Measures drun's pure parts on the head for jobs of any size: time and memory of each, without a host.
//
//   scaling HOSTS [RANKS_PER_HOST]
//
// One line per part: its name, milliseconds, MiB. perf/scaling builds and runs it. The memory is that of all
// allocations that the part leaves behind.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "launcher/plan/placement.h"
#include "launcher/run/job_state.h"
#include "netdetect/choose.h"
#include "rendezvous/roster.h"

namespace {

using namespace drun;

double allocated_mib() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

void measure(const char* name, const std::function<void()>& part) {
  const double before = allocated_mib();
  const auto began = std::chrono::steady_clock::now();
  part();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - began;
  std::printf("%s\t%.1f\t%.1f\n", name, time.count(), allocated_mib() - before);
  std::fflush(stdout);
}

// One NIC at 100 Gb/s with one address, as in a cluster that has a network for its jobs.
netdetect::HostInterfaces host_at(int number) {
  netdetect::HostInterfaces out;
  out.host = "node" + std::to_string(number);
  netdetect::Interface nic;
  nic.name = "eth0";
  nic.index = 2;
  nic.mtu = 9000;
  nic.speed_mbps = 100'000;
  nic.up = nic.running = true;
  nic.kind = "physical";
  nic.addresses.push_back(netdetect::parse_address("10." + std::to_string(1 + number / 65'536) + "." +
                                                   std::to_string(number / 256 % 256) + "." +
                                                   std::to_string(number % 256)));
  nic.addresses.back().prefix_length = 8;
  out.interfaces.push_back(std::move(nic));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const int n_hosts = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int n_each = argc > 2 ? std::atoi(argv[2]) : 8;

  std::vector<Host> hosts(static_cast<std::size_t>(n_hosts));
  std::vector<std::string> names;
  for (int i = 0; i < n_hosts; ++i) {
    auto& host = hosts[static_cast<std::size_t>(i)];
    host.name = "node" + std::to_string(i);
    host.slots = n_each;
    names.push_back(host.name);
  }
  launcher::Placement placement;
  measure("placement", [&] { placement = *launcher::place(hosts, 0); });

  launcher::JobState state(std::chrono::seconds(5), [] { return std::vector<int>(); });
  measure("state of the job", [&] { state.place(placement, std::vector<std::string>(names), {}); });

  std::vector<netdetect::HostInterfaces> inventories;
  for (int i = 0; i < n_hosts; ++i) inventories.push_back(host_at(i));
  netdetect::Candidates candidates;
  measure("candidates", [&] { candidates = *netdetect::find_candidates(inventories, {}); });
  std::vector<netdetect::AttemptResult> results;
  measure("attempts", [&] {
    for (const auto& attempt : netdetect::plan_attempts(n_hosts, candidates, 1)) {
      netdetect::AttemptResult result;
      result.attempt = attempt;
      result.result.outcome = netdetect::ProbeOutcome::kReached;
      result.result.source = candidates.tried[static_cast<std::size_t>(attempt.candidate)].address.text();
      results.push_back(std::move(result));
    }
  });
  netdetect::Choice choice;
  measure("choice of NICs", [&] {
    auto chosen = netdetect::choose(inventories, candidates, results);
    if (!chosen) {
      std::fprintf(stderr, "%s\n", chosen.error().message().c_str());
      std::exit(1);
    }
    choice = std::move(*chosen);
  });

  std::vector<rendezvous::Member> members;
  for (const auto& place : placement.ranks) {
    rendezvous::Member member;
    member.rank = place.rank;
    member.host = names[static_cast<std::size_t>(place.host)];
    member.host_index = place.host;
    members.push_back(std::move(member));
  }
  std::vector<int> host_of;
  for (const auto& member : members) host_of.push_back(member.host_index);
  std::string welcome;
  measure("hosts of WELCOME", [&] { welcome = rendezvous::encode_hosts(names, host_of); });
  std::printf("bytes of WELCOME\t%zu\n", welcome.size());
  measure("roster", [&] {
    auto* const roster = new rendezvous::Roster(std::move(members), "0123456789abcdef");
    for (const auto& place : placement.ranks) (void)roster->join(place.rank, 1);
  });
}
