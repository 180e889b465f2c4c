#include "tests/unit/cli/check_report/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "tests/hostile_text.h"

namespace drun::cli::samples {

namespace {

using check::CheckedHost;
using check::CheckResult;
using check::Finding;
using check::Severity;
using check::Verdict;
using netdetect::Link;

std::string numbered(const char* format, int i) {
  char text[64];
  std::snprintf(text, sizeof text, format, i);
  return text;
}

// Returns a number from 0 to 1 that depends only on the arguments.
double noise(int a, int b, int salt) {
  unsigned x = static_cast<unsigned>(a * 7919 + b * 104729 + salt * 15485863 + 12345);
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return static_cast<double>(x % 10000) / 10000;
}

CheckedHost host(int i, int network, int speed_mbps) {
  CheckedHost out;
  out.name = numbered("gpu%d", i + 1);
  out.host_name = out.name;
  out.slots = 8;
  netdetect::Interface interface;
  interface.name = i % 2 == 0 ? "enp3s0" : "ens5f1";
  interface.mtu = 1500;
  interface.speed_mbps = speed_mbps;
  interface.up = interface.running = true;
  interface.kind = "physical";
  netdetect::Address address =
      netdetect::parse_address("10.0." + std::to_string(network) + "." + std::to_string(i + 1));
  address.prefix_length = 24;
  interface.addresses = {address};
  netdetect::Interface docker = interface;
  docker.name = "docker0";
  docker.kind = "bridge";
  docker.speed_mbps = 0;
  docker.addresses = {netdetect::parse_address("172.17.0.1")};
  docker.addresses[0].prefix_length = 16;
  out.interfaces = {interface, docker};
  out.rejected = {{i, "docker0", "172.17.0.1", "172.17.0.1 is also on other hosts"}};
  netdetect::HostChoice choice;
  choice.interface = interface.name;
  choice.address = address;
  choice.interfaces = {interface.name};
  out.choice = choice;
  out.facts.emplace();
  out.facts->versions = {{"kernel", "6.1.0-28-amd64"}, {"glibc", "2.36"}, {"driver", "550.90.07"}};
  out.facts->cpu = "AMD EPYC 9554";
  out.facts->n_cpus = 128;
  out.facts->memory_total_mib = 1160000;
  out.facts->gpus.resize(8);
  for (auto& gpu : out.facts->gpus) gpu.name = "NVIDIA H100 80GB HBM3";
  out.connect_seconds = 0.31 + 0.05 * noise(i, i, 3);
  return out;
}

CheckResult hosts(int n_hosts, int speed_mbps, int n_networks = 1) {
  CheckResult out;
  out.version = "0.1.0";
  out.begin = std::chrono::system_clock::time_point(std::chrono::seconds(1767225600));
  out.seconds = 6.24;
  for (int i = 0; i < n_hosts; ++i) out.hosts.push_back(host(i, i * n_networks / n_hosts, speed_mbps));
  const auto n = static_cast<std::size_t>(n_hosts);
  out.reach.assign(n, std::vector<int>(n, 1));
  return out;
}

netdetect::Direction direction(double bits_per_second) {
  netdetect::Direction out;
  out.rates = {{1, bits_per_second * 0.97, 0.15, 20000, 3}, {4, bits_per_second, 0.15, 20000, 9}};
  out.path_mtu = 1500;
  return out;
}

Link link(int a, int b, double bits_per_second, double round_trip_us) {
  Link out;
  out.a = a;
  out.b = b;
  out.forward = direction(bits_per_second * (0.97 + 0.04 * noise(a, b, 1)));
  out.backward = direction(bits_per_second * (0.97 + 0.04 * noise(b, a, 1)));
  out.n_round_trips = 100;
  out.rtt_median_us = round_trip_us * (0.95 + 0.1 * noise(a, b, 2));
  out.rtt_min_us = out.rtt_median_us * 0.8;
  out.rtt_p99_us = out.rtt_median_us * 1.9;
  return out;
}

// True if the plan measures the pair: all pairs up to 32 hosts, then the ring and some others.
bool measured(int n_hosts, int a, int b) {
  return n_hosts <= 32 || b - a == 1 || (a == 0 && b == n_hosts - 1) || noise(a, b, 9) < 0.2;
}

// A ring takes 2(n-1) steps of alpha and a share of the bytes; a tree has log2(n) levels, passed twice.
void predict(CheckResult& result, double bits_per_second, double round_trip_us, std::size_t n_bytes = 100000000) {
  const auto usable =
      std::count_if(result.hosts.begin(), result.hosts.end(), [](const CheckedHost& h) { return !h.error; });
  const auto n = static_cast<double>(usable);
  const double alpha = round_trip_us * 0.5e-6 + 10e-6, beta = 8 / bits_per_second;
  const auto ring = [&](double x) { return 2 * (n - 1) * (alpha + x / n * beta); };
  const auto tree = [&](double x) { return 2 * std::ceil(std::log2(n)) * (alpha + x * beta); };
  check::Prediction p;
  p.n_bytes = n_bytes;
  p.n_hosts = static_cast<int>(usable);
  std::set<std::size_t> sizes = {n_bytes};
  for (std::size_t size = 4; size <= std::max(n_bytes, std::size_t{1} << 30); size *= 4) sizes.insert(size);
  for (const std::size_t size : sizes) {
    const auto x = static_cast<double>(size);
    p.curve.push_back({size, std::min(ring(x), tree(x)), ring(x), tree(x)});
    if (size == n_bytes) p.seconds = p.network_seconds = p.curve.back().seconds;
  }
  result.predicted = p;
}

void set_steps(check::Prediction& p) {
  p.step_seconds = 0.3;
  p.efficiency = 0.3 / (0.3 + p.seconds);
  p.efficiency_overlapped = 0.3 / p.seconds;
}

void finish(CheckResult& result) {
  check::sort_findings(result.findings);
  Severity worst = Severity::kNote;
  for (const auto& finding : result.findings) {
    worst = std::max(worst, finding.severity);
    for (const int at : finding.hosts) {
      auto& verdict = result.hosts[static_cast<std::size_t>(at)].verdict;
      verdict = std::max(verdict, check::verdict_of(finding.severity));
    }
  }
  result.verdict = check::verdict_of(worst);
}

void lose(CheckResult& result, int at) {
  auto& host = result.hosts[static_cast<std::size_t>(at)];
  CheckedHost lost;
  lost.name = host.name;
  lost.slots = host.slots;
  lost.verdict = Verdict::kNotReady;
  lost.error = Error(Errc::kUnreachable, host.name,
                     "connect: 10.0.0." + std::to_string(at + 1) + " port 12345: connection refused")
                   .with_hint("ssh -p 12345 " + host.name + " true");
  Finding finding;
  finding.severity = Severity::kFailure;
  finding.code = "host-unreachable";
  finding.hosts = {at};
  finding.subject = host.name;
  finding.text = lost.error->cause;
  finding.command = lost.error->hint;
  host = lost;
  result.findings.push_back(finding);
  for (auto& row : result.reach) row[static_cast<std::size_t>(at)] = -1;
  for (auto& reached : result.reach[static_cast<std::size_t>(at)]) reached = -1;
}

}  // namespace

CheckResult healthy(int n_hosts) {
  CheckResult out = hosts(n_hosts, 10000);
  for (int a = 0; a < n_hosts; ++a) {
    for (int b = a + 1; b < n_hosts; ++b) {
      if (measured(n_hosts, a, b)) out.links.links.push_back(link(a, b, 9.41e9, 84));
    }
  }
  predict(out, 9.1e9, 84);
  finish(out);
  return out;
}

CheckResult one_slow(int n_hosts) {
  constexpr int kSlow = 2;
  CheckResult out = hosts(n_hosts, 1000);
  for (int a = 0; a < n_hosts; ++a) {
    for (int b = a + 1; b < n_hosts; ++b) {
      const bool slow = a == kSlow || b == kSlow;
      if (measured(n_hosts, a, b)) out.links.links.push_back(link(a, b, slow ? 9.42e6 : 941e6, slow ? 1240 : 180));
    }
  }
  out.links.second_pass = {link(0, kSlow, 9.4e6, 1240), link(0, 1, 941e6, 180)};
  Finding slow;
  slow.severity = Severity::kWarning;
  slow.code = "link-slow";
  slow.hosts = {kSlow};
  slow.subject = "gpu3 enp3s0";
  slow.text =
      "moves 9.4 Mb/s, others move 941 Mb/s measured the same way; a link that was negotiated at 10 Mb/s does that";
  slow.details = {"gpu1 to gpu3: 9.4 Mb/s", "gpu3 to gpu1: 9.4 Mb/s"};
  slow.comparison = {"gpu1 to gpu2: 941 Mb/s"};
  slow.command = "ssh gpu3 ethtool enp3s0";
  Finding note;
  note.code = "versions-differ";
  note.hosts = {1};
  note.subject = "gpu2";
  note.text = "has kernel 6.1.0-27-amd64, the others have 6.1.0-28-amd64";
  out.findings = {note, slow};
  predict(out, 9.4e6, 600);
  out.predicted->slowest_from = 0;
  out.predicted->slowest_to = kSlow;
  out.predicted->slowest_bits_per_second = 9.4e6;
  out.predicted->without = {kSlow};
  out.predicted->seconds_without = 1.16;
  set_steps(*out.predicted);
  finish(out);
  // Notes don't reduce the number of ready hosts.
  return out;
}

CheckResult one_unreachable(int n_hosts) {
  CheckResult out = healthy(n_hosts);
  lose(out, 1);
  out.links.links.erase(std::remove_if(out.links.links.begin(), out.links.links.end(),
                                       [](const Link& l) { return l.a == 1 || l.b == 1; }),
                        out.links.links.end());
  out.predicted.reset();
  if (!out.links.links.empty()) predict(out, 9.1e9, 84);
  finish(out);
  return out;
}

CheckResult nothing_reachable(int n_hosts) {
  CheckResult out = hosts(n_hosts, 1000);
  for (int i = 0; i < n_hosts; ++i) lose(out, i);
  out.reach.clear();
  out.seconds = 0.42;
  finish(out);
  return out;
}

CheckResult troubled(int n_hosts) {
  CheckResult out = hosts(n_hosts, 10000, n_hosts >= 4 ? 2 : 1);
  const int slow = n_hosts - 1;
  const int filtered_from = 0, filtered_to = n_hosts / 2;
  for (int i = 0; i < n_hosts && n_hosts > 16; ++i) {
    out.hosts[static_cast<std::size_t>(i)].name = numbered("node%03d.cluster.example.org", i + 1);
    out.hosts[static_cast<std::size_t>(i)].host_name = out.hosts[static_cast<std::size_t>(i)].name;
  }
  for (int a = 0; a < n_hosts; ++a) {
    for (int b = a + 1; b < n_hosts; ++b) {
      if (!measured(n_hosts, a, b)) continue;
      const bool far = a * 2 / n_hosts != b * 2 / n_hosts;
      Link l = link(a, b, b == slow ? 0.94e9 : far ? 6.1e9 : 9.41e9, far ? 240 : 84);
      if (n_hosts > 2 && a == filtered_from && b == filtered_to) {
        l.forward = {};
        l.forward.error = "no answer from 10.0.0.9: filtered";
      }
      if (n_hosts > 3 && a == 1 && b == 2) l.backward = direction(2.9e9);
      out.links.links.push_back(l);
    }
  }
  const auto name = [&](int i) { return out.hosts[static_cast<std::size_t>(i)].name; };
  Finding f;
  f.severity = Severity::kWarning;
  f.code = "link-slow";
  f.hosts = {slow};
  f.subject = name(slow);
  f.text = "moves 940 Mb/s with every peer, the median of the others is 9.41 Gb/s";
  f.details = {"its card says 10 Gb/s", "measured again, alone: 938 Mb/s"};
  f.command = "ssh " + name(slow) + " ethtool enp3s0";
  out.findings.push_back(f);
  if (n_hosts > 2) {
    f = {};
    f.severity = Severity::kFailure;
    f.code = "direction-filtered";
    f.hosts = {filtered_to};
    f.subject = name(filtered_from) + " to " + name(filtered_to);
    f.text = "gets no answer, while the other direction connects: something on the way drops the packets";
    f.command = "ssh " + name(filtered_to) + " nft list ruleset";
    out.findings.push_back(f);
  }
  predict(out, 0.94e9, 150);
  out.predicted->slowest_from = 0;
  out.predicted->slowest_to = slow;
  out.predicted->slowest_bits_per_second = 0.94e9;
  if (n_hosts > 2) {
    out.predicted->without = {slow};
    out.predicted->seconds_without = out.predicted->seconds / 7;
  }
  out.notes = {"the ring of all hosts at once was left out: 15 s had passed"};
  finish(out);
  return out;
}

CheckResult uneven_pair() {
  CheckResult out = hosts(2, 0);
  Link l = link(0, 1, 10e9, 84);
  l.forward = direction(10e9);
  l.backward = direction(6.84e9);
  out.links.links.push_back(l);
  predict(out, 15.7e9, 84, 14'000'000'000);
  out.predicted->slowest_from = 0;
  out.predicted->slowest_to = 1;
  out.predicted->slowest_bits_per_second = 15.7e9;
  set_steps(*out.predicted);
  finish(out);
  return out;
}

CheckResult hostile() {
  CheckResult out = one_slow(3);
  out.hosts[0].name = "<script>alert(1)</script>";
  out.hosts[1].name = "a'b\"c&d";
  out.hosts[2].host_name = "\033[31mred\033[0m";
  out.hosts[2].rejected[0].reason = "</td><img src=x onerror=alert(1)>";
  out.findings[0].text = "says <b>\"moin\"</b> & \033]0;title\007 more";
  out.findings[0].command = "echo '</code><script>alert(2)</script>'";
  out.findings[0].subject = "<script>alert(3)</script>";
  out.findings[0].details = {testing::kHostile};
  out.notes = {"\033[2J<svg onload=alert(4)>", testing::kHostile};
  out.hosts[1].facts->versions["<kernel>"] = "<script>";
  return out;
}

std::vector<std::string> names() {
  return {"healthy", "one-slow", "one-unreachable", "nothing-reachable", "troubled", "uneven-pair", "hostile"};
}

CheckResult by_name(const std::string& name, int n_hosts) {
  if (name == "one-slow") return one_slow(n_hosts);
  if (name == "one-unreachable") return one_unreachable(n_hosts);
  if (name == "nothing-reachable") return nothing_reachable(n_hosts);
  if (name == "troubled") return troubled(n_hosts);
  if (name == "uneven-pair") return uneven_pair();
  if (name == "hostile") return hostile();
  return healthy(n_hosts);
}

}  // namespace drun::cli::samples
