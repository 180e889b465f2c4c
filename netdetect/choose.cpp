#include "netdetect/choose.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "netdetect/asymmetric_reach.h"
#include "netdetect/faulty_hosts.h"
#include "netdetect/network.h"
#include "netdetect/reachability_votes.h"
#include "netdetect/unreachable.h"

namespace drun::netdetect {
namespace {

constexpr std::size_t kNcclInterfaces = 16;

class Chooser {
 public:
  Chooser(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, ReachabilityVotes tally)
      : hosts_(hosts), candidates_(candidates), tally_(std::move(tally)) {
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      if (tally_.candidates[c].good) sharers_[network_key(c)].insert(namespace_of(candidates_.tried[c].host));
    }
  }

  Result<Choice> run(std::vector<int>& faulty) {
    const Picks v4 = pick(4);
    const Picks v6 = pick(6);
    const bool all_v4 = complete(v4);
    const bool all_v6 = complete(v6);
    if (all_v4 || all_v6) {
      const bool take_v6 = all_v6 && (!all_v4 || worst(v6) > worst(v4));
      return write(take_v6 ? v6 : v4);
    }
    const Picks any = pick(0);
    if (complete(any)) {
      auto choice = write(any);
      choice.notes.push_back("no address family is shared by all hosts: some get IPv4, some IPv6");
      return choice;
    }
    return run_one_way(faulty);
  }

 private:
  // Chooses when some host has no good candidate.
  Result<Choice> run_one_way(std::vector<int>& faulty) const {
    const ReachabilityMatrix directions(hosts_, candidates_, tally_);
    const std::vector<int> order = positions();
    struct Assignment {
      Picks picks;
      Pairs unconnected;
      bool complete = false;
    };
    std::vector<Assignment> assignments;
    for (const int family : {4, 6, 0}) {
      Assignment assignment;
      assignment.picks = fill_one_way(pick(family), candidates_, tally_, directions, family, order);
      assignment.unconnected = unconnected_at(assignment.picks, directions);
      assignment.complete = complete(assignment.picks);
      assignments.push_back(std::move(assignment));
    }
    // Prefers the most hosts with a good candidate, then one family for all, then the faster choice, then IPv4.
    const Assignment* best = nullptr;
    std::tuple<std::ptrdiff_t, bool, std::pair<int, bool>> best_weight;
    for (const Assignment& assignment : assignments) {
      if (!assignment.complete || !assignment.unconnected.empty()) continue;
      const auto n_good = std::count_if(assignment.picks.begin(), assignment.picks.end(),
                                        [this](int c) { return tally_.candidates[static_cast<std::size_t>(c)].good; });
      const auto weight = std::make_tuple(n_good, &assignment != &assignments.back(), worst(assignment.picks));
      if (best != nullptr && weight <= best_weight) continue;
      best = &assignment;
      best_weight = weight;
    }
    if (best != nullptr) {
      Choice choice = write(best->picks);
      choice.warnings = one_way_warnings(hosts_, candidates_, tally_, best->picks);
      return choice;
    }
    return fail(no_choice(directions, assignments.back().picks, faulty));
  }

  Error no_choice(const ReachabilityMatrix& directions, const Picks& picks, std::vector<int>& faulty) const {
    Pairs pairs = find_unconnected(tally_, directions);
    std::vector<int> lacking;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (picks[static_cast<std::size_t>(tally_.namespaces[h])] < 0) lacking.push_back(static_cast<int>(h));
    }
    faulty = find_faulty_hosts(static_cast<int>(hosts_.size()), candidates_, pairs);
    if (faulty.empty()) {  // each pair has working addresses, but no choice connects all
      pairs = hosts_of(unconnected_at(picks, directions));
      faulty = find_faulty_hosts(static_cast<int>(hosts_.size()), candidates_, pairs);
    }
    Error error = unreachable_error(hosts_, candidates_, tally_, pairs, faulty, lacking);
    if (faulty.empty()) faulty = lacking;
    return error;
  }

  Pairs hosts_of(const Pairs& of_namespaces) const {
    const std::set<std::pair<int, int>> known(of_namespaces.begin(), of_namespaces.end());
    Pairs out;
    for (std::size_t a = 0; a < hosts_.size(); ++a) {
      for (std::size_t b = a + 1; b < hosts_.size(); ++b) {
        if (known.count(std::minmax(tally_.namespaces[a], tally_.namespaces[b])) > 0) {
          out.emplace_back(static_cast<int>(a), static_cast<int>(b));
        }
      }
    }
    return out;
  }

  int namespace_of(int host) const { return tally_.namespaces[static_cast<std::size_t>(host)]; }
  const Interface& nic(int c) const {
    const Candidate& candidate = candidates_.tried[static_cast<std::size_t>(c)];
    return hosts_[static_cast<std::size_t>(candidate.host)].interfaces[static_cast<std::size_t>(candidate.interface)];
  }
  // The speed used for the choice, in Mb/s: measured if known, else the driver's.
  int speed(int c) const {
    const int measured = candidates_.tried[static_cast<std::size_t>(c)].measured_mbps;
    return measured > 0 ? measured : nic(c).speed_mbps;
  }
  // Steps of 20 %: the speeds of two kinds of NIC differ by more, two measurements of one kind by less.
  int speed_step(int c) const {
    return speed(c) <= 0 ? 0 : 1 + static_cast<int>(std::floor(std::log(speed(c)) / std::log(1.2)));
  }
  std::string network_key(std::size_t c) const { return network_text(candidates_.tried[c].address); }

  static bool are_alike(const Interface& a, const Interface& b) {
    return a.speed_mbps > 0 && a.speed_mbps == b.speed_mbps && a.kind == b.kind;
  }
  static bool is_tunnel(const Interface& nic) { return nic.kind == "tun" || nic.kind == "wireguard"; }

  // Smaller is better.
  auto rank(int c) const {
    const auto i = static_cast<std::size_t>(c);
    const Candidate& candidate = candidates_.tried[i];
    const Interface& n = nic(c);
    const auto shared = sharers_.find(network_key(i));
    const std::size_t n_sharing = shared == sharers_.end() ? 0 : shared->second.size();
    const auto metric = n.route_metric < 0 ? std::numeric_limits<std::int64_t>::max() : n.route_metric;
    int time_step = 0;  // differences below a millisecond are noise
    for (std::uint32_t ms = tally_.candidates[i].median_micros / 1000; ms > 0; ms /= 2) ++time_step;
    // All hosts should take the same one of equally good networks, whatever the name of its interface.
    const std::string network = n_sharing > 1 ? network_of(candidate.address).bytes : "";
    return std::make_tuple(-speed_step(c), !n.rdma, is_tunnel(n), candidate.address.family,
                           -static_cast<std::int64_t>(n_sharing), metric, time_step, network, n.name, c);
  }

  // By candidate: its position in the order of rank().
  std::vector<int> positions() const {
    std::vector<int> sorted(candidates_.tried.size());
    for (std::size_t c = 0; c < sorted.size(); ++c) sorted[c] = static_cast<int>(c);
    std::sort(sorted.begin(), sorted.end(), [this](int a, int b) { return rank(a) < rank(b); });
    std::vector<int> out(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) out[static_cast<std::size_t>(sorted[i])] = static_cast<int>(i);
    return out;
  }

  // The best good candidate of each namespace; `family` 0: any.
  Picks pick(int family) const {
    Picks picks(static_cast<std::size_t>(tally_.n_namespaces), -1);
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      const Candidate& candidate = candidates_.tried[c];
      if (!tally_.candidates[c].good || (family != 0 && candidate.address.family != family)) continue;
      int& best = picks[static_cast<std::size_t>(namespace_of(candidate.host))];
      if (best < 0 || rank(static_cast<int>(c)) < rank(best)) best = static_cast<int>(c);
    }
    return picks;
  }

  static bool complete(const Picks& picks) {
    return std::all_of(picks.begin(), picks.end(), [](int c) { return c >= 0; });
  }

  // Speed and RDMA of the slowest host's choice; larger is better.
  std::pair<int, bool> worst(const Picks& picks) const {
    std::pair<int, bool> out{std::numeric_limits<int>::max(), true};
    for (const int c : picks) out = std::min(out, std::make_pair(speed_step(c), nic(c).rdma));
    return out;
  }

  Choice write(const Picks& picks) const {
    Choice choice;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int c = picks[static_cast<std::size_t>(tally_.namespaces[h])];
      HostChoice host;
      host.interface = nic(c).name;
      host.address = candidates_.tried[static_cast<std::size_t>(c)].address;
      host.interfaces = alike(c);
      host.reached_by_all = tally_.candidates[static_cast<std::size_t>(c)].good;
      choice.notes.push_back(note(hosts_[h].host, c));
      choice.hosts.push_back(std::move(host));
    }
    choice.reach = reach(picks);
    return choice;
  }

  // The chosen NIC and the good NICs of the same host that can carry a part of its traffic. Their speeds must be
  // known and equal, because traffic that is spread evenly runs at the pace of the slowest.
  std::vector<std::string> alike(int chosen) const {
    const Candidate& pattern = candidates_.tried[static_cast<std::size_t>(chosen)];
    std::vector<int> order;
    for (std::size_t i = 0; i < candidates_.tried.size(); ++i) {
      const int c = static_cast<int>(i);
      const Candidate& candidate = candidates_.tried[i];
      if (candidate.host != pattern.host || candidate.address.family != pattern.address.family) continue;
      if (tally_.candidates[i].good && are_alike(nic(c), nic(chosen))) order.push_back(c);
    }
    std::sort(order.begin(), order.end(), [this](int a, int b) { return rank(a) < rank(b); });
    std::vector<std::string> names{nic(chosen).name};
    for (const int c : order) {
      const bool known = std::find(names.begin(), names.end(), nic(c).name) != names.end();
      if (!known && names.size() < kNcclInterfaces) names.push_back(nic(c).name);
    }
    return names;
  }

  std::string note(const std::string& host, int c) const {
    const Interface& n = nic(c);
    const auto& tally = tally_.candidates[static_cast<std::size_t>(c)];
    std::string text = host + ": " + n.name + " " + candidates_.tried[static_cast<std::size_t>(c)].address.text();
    text += ", ";
    text += speed(c) > 0 ? std::to_string(speed(c)) + " Mb/s" : "speed unknown";
    if (candidates_.tried[static_cast<std::size_t>(c)].measured_mbps > 0) text += " (measured)";
    if (n.rdma) text += ", RDMA";
    if (tally.attempts.empty()) return text + ", not tried: all hosts share one network namespace";
    const auto n_reached =
        std::count_if(tally.attempts.begin(), tally.attempts.end(), [](const auto* a) { return reached(*a); });
    text += ", reached in " + plural(static_cast<std::size_t>(n_reached), "attempt");
    text += tally.good ? " out of as many" : " out of " + std::to_string(tally.attempts.size());
    if (n_reached == 0) return text;
    return text + ", typically in " + std::to_string(tally.median_micros) + " us";
  }

  std::vector<std::vector<int>> reach(const Picks& picks) const {
    const std::size_t n = hosts_.size();
    std::vector<std::vector<int>> out(n, std::vector<int>(n, -1));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (tally_.namespaces[i] == tally_.namespaces[j]) out[i][j] = 1;
      }
    }
    for (std::size_t j = 0; j < n; ++j) {
      const int c = picks[static_cast<std::size_t>(tally_.namespaces[j])];
      for (const AttemptResult* a : tally_.candidates[static_cast<std::size_t>(c)].attempts) {
        const auto i = static_cast<std::size_t>(a->attempt.from);
        // Attempts at another host of j's namespace count where j itself was not tried.
        const int to = candidates_.tried[static_cast<std::size_t>(a->attempt.candidate)].host;
        if (to == static_cast<int>(j) || out[i][j] == -1) out[i][j] = reached(*a) ? 1 : 0;
      }
    }
    return out;
  }

  const std::vector<HostInterfaces>& hosts_;
  const Candidates& candidates_;
  ReachabilityVotes tally_;
  std::map<std::string, std::set<int>> sharers_;  // by network: the namespaces with a good candidate in it
};

Choice loopback_for_all(const std::vector<HostInterfaces>& hosts) {
  Choice choice;
  for (const auto& host : hosts) {
    HostChoice out;
    out.interface = "lo";
    for (const auto& nic : host.interfaces) {
      if (nic.loopback) out.interface = nic.name;
    }
    out.address = parse_address("127.0.0.1");
    out.interfaces = {out.interface};
    choice.notes.push_back(host.host + ": " + out.interface + " 127.0.0.1: no other host needs to reach it");
    choice.hosts.push_back(std::move(out));
  }
  choice.reach.assign(hosts.size(), std::vector<int>(hosts.size(), 1));
  return choice;
}

}  // namespace

Result<Choice> choose(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                      const std::vector<AttemptResult>& results, std::vector<int>& faulty) {
  faulty.clear();
  if (hosts.empty()) return Choice{};
  ReachabilityVotes tally = tally_results(hosts, candidates, results);
  if (tally.n_namespaces == 1) {
    if (hosts.size() == 1 || candidates.tried.empty()) return loopback_for_all(hosts);
    for (auto& candidate : tally.candidates) candidate.good = true;  // no other network namespace could try them
  }
  auto choice = Chooser(hosts, candidates, std::move(tally)).run(faulty);
  if (!choice && faulty.empty()) faulty.push_back(0);
  return choice;
}

Result<Choice> choose(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                      const std::vector<AttemptResult>& results) {
  std::vector<int> faulty;
  return choose(hosts, candidates, results, faulty);
}

}  // namespace drun::netdetect
