#include "check/link_limits.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "check/link_attribution.h"
#include "netdetect/link_stats.h"
#include "netdetect/path_mtu.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

// A few TCP connections of one thread do not fill a faster link, so no more than this is expected of a link.
constexpr double kTcpReaches = 10e9;
constexpr double kFarBelowNominal = 0.3;
constexpr double kAlike = 1.5;
// Headers take 6 %; a rate above 100 Mb/s was not measured on a link of 100 Mb/s.
constexpr double k10Mbit = 12e6, k100MbitLeast = 85e6, k100MbitMost = 101e6;
constexpr double kOversubscribed = 0.5, kVeryOversubscribed = 0.25;
constexpr double kStreamsHelp = 1.6, kFewStreamsHelp = 3;

const LinkHost& at(const std::vector<LinkHost>& hosts, int host) { return hosts[static_cast<std::size_t>(host)]; }

std::string on_host(const std::vector<LinkHost>& hosts, int host, std::string command) {
  return std::move(command) + "  # on " + at(hosts, host).name;
}

std::string subject_of(const std::vector<LinkHost>& hosts, int host) {
  return at(hosts, host).name + " " + at(hosts, host).interface;
}

std::vector<std::string> names_of(const std::vector<LinkHost>& hosts, const std::vector<int>& which) {
  std::vector<std::string> out;
  for (const int host : which) out.push_back(at(hosts, host).name);
  return out;
}

std::vector<netdetect::Link> of_both_passes(const netdetect::LinkReport& report) {
  std::vector<netdetect::Link> links = report.links;
  links.insert(links.end(), report.second_pass.begin(), report.second_pass.end());
  return links;
}

// The best measurements of both passes.
netdetect::Edges all_edges(const netdetect::LinkReport& report) { return netdetect::edges_of(of_both_passes(report)); }

// The largest packet of `pair` that arrives over a sound path.
int expected_path_mtu(const std::vector<LinkHost>& hosts, const netdetect::HostPair& pair) {
  return netdetect::largest_tried(at(hosts, pair.first).mtu, at(hosts, pair.second).mtu);
}

std::set<int> hosts_of(const netdetect::Edges& edges) {
  std::set<int> out;
  for (const auto& [pair, edge] : edges) out.insert({pair.first, pair.second});
  return out;
}

// True if a cable is between them. The other end of a veth is on the same machine.
bool wired(const LinkHost& a, const LinkHost& b) {
  return a.kind != "veth" && b.kind != "veth" && (a.machine.empty() || a.machine != b.machine);
}

// A warning about the hosts `which`. Its subject is "all hosts" if no others were measured.
Finding about(const std::vector<LinkHost>& hosts, const std::vector<int>& which, std::size_t n_measured) {
  Finding out;
  out.severity = Severity::kWarning;
  if (which.size() == 2 && n_measured == 2) {
    out.hosts = which;
    out.subject = at(hosts, which[0]).name + " to " + at(hosts, which[1]).name;
  } else if (which.size() == n_measured) {
    out.subject = "all hosts";
  } else {
    out.hosts = which;
    out.subject =
        which.size() == 1 ? subject_of(hosts, which[0]) : list_some(names_of(hosts, which), netdetect::kHostsShown);
  }
  return out;
}

struct Best {
  double bits_per_second = 0, of_nominal = 1;
  bool nominal_known = false;
  std::set<int> peers;  // with which it was measured
};

// True if its only peer, which was measured with others too, may be why it is slow.
bool may_be_its_peer(const std::map<int, Best>& best, const Best& own) {
  if (own.peers.size() != 1) return false;
  const Best& peer = best.at(*own.peers.begin());
  return peer.peers.size() > 1 && peer.bits_per_second < kAlike * own.bits_per_second;
}

// For hosts that are not named, because they were measured with one that is alone.
std::string measured_alone(const std::vector<LinkHost>& hosts, const std::vector<int>& which) {
  return list_some(names_of(hosts, which), netdetect::kHostsShown) +
         ": measured with such a host alone, and may be as slow";
}

void add_nominal(const std::vector<LinkHost>& hosts, const std::vector<int>& which, std::vector<std::string>& details) {
  for (const int host : which) {
    const int speed = at(hosts, host).speed_mbps;
    if (speed > 0) details.push_back(subject_of(hosts, host) + " says that it runs at " + rate_text(speed * 1e6));
    if (details.size() >= netdetect::kHostsShown) break;
  }
}

// mtu-mismatch.
void find_mtu_mismatch(const std::vector<LinkHost>& hosts, std::vector<Finding>& out) {
  std::map<int, std::vector<int>> by_mtu;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!hosts[i].interface.empty() && hosts[i].mtu > 0) by_mtu[hosts[i].mtu].push_back(static_cast<int>(i));
  }
  if (by_mtu.size() <= 1) return;
  // The most frequent MTU; on a tie the smaller one, which works with both.
  auto usual = by_mtu.begin();
  std::size_t n = 0;
  for (auto it = by_mtu.begin(); it != by_mtu.end(); ++it) {
    n += it->second.size();
    if (it->second.size() > usual->second.size()) usual = it;
  }
  for (const auto& [mtu, which] : by_mtu) {
    if (mtu == usual->first) continue;
    Finding finding = about(hosts, which, n + 1);
    if (which.size() > 1) {
      for (const int host : which) finding.details.push_back(subject_of(hosts, host) + ": " + std::to_string(mtu));
    }
    const int other = usual->second.front();
    if (n == 2) finding.details.push_back(subject_of(hosts, other) + ": " + std::to_string(usual->first));
    finding.code = "mtu-mismatch";
    finding.text = "its MTU is " + std::to_string(mtu) + ", that of " +
                   (usual->second.size() == 1 ? subject_of(hosts, other) : plural(usual->second.size(), "host")) +
                   " is " + std::to_string(usual->first);
    if (which.size() > 1) finding.text = "MTU " + finding.text.substr(std::string("its MTU is ").size());
    finding.command = on_host(hosts, which[0],
                              "ip link set " + at(hosts, which[0]).interface + " mtu " + std::to_string(usual->first));
    if (mtu < usual->first) {
      finding.command = on_host(hosts, which[0], "ip link show " + at(hosts, which[0]).interface);
    }
    out.push_back(std::move(finding));
  }
}

// mtu-path.
void find_path_mtu(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report, std::vector<Finding>& out) {
  std::set<netdetect::HostPair> measured, bad;
  const netdetect::Edges edges = all_edges(report);
  for (const auto& [pair, edge] : edges) {
    const int expected = expected_path_mtu(hosts, pair);
    if (edge.path_mtu <= 0 || expected <= 0) continue;
    measured.insert(pair);
    if (edge.path_mtu < expected) bad.insert(pair);
  }
  const auto add = [&](Finding finding, const netdetect::HostPair& example) {
    const int mtu = std::min(at(hosts, example.first).mtu, at(hosts, example.second).mtu);
    const int path = edges.at(example).path_mtu;
    finding.severity = Severity::kWarning;
    finding.code = "mtu-path";
    finding.text = "packets of more than " + std::to_string(path) +
                   " bytes do not arrive, though the interfaces' MTU is " + std::to_string(mtu);
    constexpr int kIpAndIcmp = 28;
    finding.command =
        on_host(hosts, example.first,
                "ping -M do -s " + std::to_string(mtu - kIpAndIcmp) + " " + at(hosts, example.second).name);
    out.push_back(std::move(finding));
  };
  if (bad.size() > 2 && bad.size() == measured.size()) {  // a switch without jumbo frames
    Finding finding;
    finding.subject = "all hosts";
    add(finding, *bad.begin());
    return;
  }
  const Attribution attribution = attribute_links(measured, bad);
  for (const int host : attribution.hosts()) {
    const auto example = std::find_if(bad.begin(), bad.end(), [&](const netdetect::HostPair& pair) {
      return (pair.first == host && attribution.senders.contains(host)) ||
             (pair.second == host && attribution.receivers.contains(host));
    });
    Finding finding;
    finding.hosts = {host};
    finding.subject = subject_of(hosts, host);
    add(finding, *example);
  }
  for (const netdetect::HostPair& pair : attribution.pairs) {
    // Both directions of a pair are one finding.
    if (pair.first > pair.second && attribution.pairs.contains({pair.second, pair.first})) continue;
    Finding finding;
    finding.hosts = {pair.first, pair.second};
    finding.subject = at(hosts, pair.first).name + " to " + at(hosts, pair.second).name;
    add(finding, pair);
  }
}

}  // namespace

int negotiated_mbps(double bits_per_second) {
  if (bits_per_second <= 0) return 0;
  if (bits_per_second <= k10Mbit) return 10;
  return bits_per_second >= k100MbitLeast && bits_per_second <= k100MbitMost ? 100 : 0;
}

std::string negotiated_words(double bits_per_second) {
  const int mbps = negotiated_mbps(bits_per_second);
  return mbps == 0 ? "" : "; a link that was negotiated at " + std::to_string(mbps) + " Mb/s does that";
}

std::vector<Finding> unmeasured_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                         const std::set<int>& lossy) {
  const netdetect::Edges edges = all_edges(report);
  std::set<netdetect::HostPair> tried, failed;
  for (const auto& [pair, edge] : edges) {
    tried.insert(pair);
    // A direction that failed once but was measured later does not count.
    if (edge.failed()) failed.insert(pair);
  }
  const Attribution attribution = attribute_links(tried, failed);
  std::vector<Finding> out;
  const auto large_vanish = [&](const netdetect::HostPair& pair) {
    const netdetect::Edge& edge = edges.at(pair);
    return edge.path_mtu > 0 && edge.path_mtu < expected_path_mtu(hosts, pair);
  };
  const auto add = [&](Finding finding, const netdetect::HostPair& example) {
    finding.severity = Severity::kWarning;
    finding.code = "link-not-measured";
    const netdetect::Edge& edge = edges.at(example);
    finding.text = "no data came through in time: " + edge.error;
    if (large_vanish(example)) {
      finding.severity = Severity::kFailure;  // small packets pass, and no transfer ever ends
      finding.text += "; packets of more than " + std::to_string(edge.path_mtu) + " bytes do not arrive";
    }
    out.push_back(std::move(finding));
  };
  for (const int host : attribution.hosts()) {
    const auto example = std::find_if(failed.begin(), failed.end(), [&](const netdetect::HostPair& pair) {
      return (pair.first == host && attribution.senders.contains(host)) ||
             (pair.second == host && attribution.receivers.contains(host));
    });
    Finding finding;
    finding.hosts = {host};
    finding.subject = subject_of(hosts, host);
    finding.command = on_host(hosts, host, "ip -s link show " + at(hosts, host).interface);
    add(finding, *example);
  }
  for (const netdetect::HostPair& pair : attribution.pairs) {
    if ((lossy.contains(pair.first) || lossy.contains(pair.second)) && !large_vanish(pair)) continue;
    Finding finding;
    finding.hosts = {pair.first, pair.second};
    finding.subject = at(hosts, pair.first).name + " to " + at(hosts, pair.second).name;
    finding.command = on_host(hosts, pair.first, "tracepath " + at(hosts, pair.second).name);
    add(finding, pair);
  }
  return out;
}

std::vector<Finding> rate_limit_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                         const std::set<int>& named) {
  // Rates inside a machine say nothing about its cable.
  const netdetect::Edges edges = netdetect::edges_of(between_machines(hosts, of_both_passes(report)));
  const std::size_t n_measured = hosts_of(edges).size();
  std::map<int, Best> best;
  for (const auto& [pair, edge] : edges) {
    if (edge.bits_per_second <= 0) continue;
    const LinkHost &from = at(hosts, pair.first), &to = at(hosts, pair.second);
    const bool known = from.speed_mbps > 0 && to.speed_mbps > 0 && wired(from, to);
    const double promised = std::min(std::min(from.speed_mbps, to.speed_mbps) * 1e6, kTcpReaches);
    best[pair.first].peers.insert(pair.second);
    best[pair.second].peers.insert(pair.first);
    for (const int host : {pair.first, pair.second}) {
      Best& b = best[host];
      b.bits_per_second = std::max(b.bits_per_second, edge.bits_per_second);
      if (!known) continue;
      b.of_nominal =
          b.nominal_known ? std::max(b.of_nominal, edge.bits_per_second / promised) : edge.bits_per_second / promised;
      b.nominal_known = true;
    }
  }
  std::vector<Finding> out;
  std::set<int> told = named;
  for (const int mbps : {10, 100}) {
    std::vector<int> which, alone;
    double most = 0;
    for (const auto& [host, b] : best) {
      if (told.contains(host) || negotiated_mbps(b.bits_per_second) != mbps) continue;
      if (may_be_its_peer(best, b)) {
        alone.push_back(host);
        continue;
      }
      which.push_back(host);
      most = std::max(most, b.bits_per_second);
    }
    if (which.empty()) continue;
    Finding finding = about(hosts, which, n_measured);
    finding.code = "link-slow";
    finding.text = "moves " + rate_text(most) + " at most" + negotiated_words(most);
    finding.command = on_host(hosts, which[0], "ethtool " + at(hosts, which[0]).interface);
    add_nominal(hosts, which, finding.details);
    if (!alone.empty()) finding.details.push_back(measured_alone(hosts, alone));
    told.insert(which.begin(), which.end());
    out.push_back(std::move(finding));
  }
  std::vector<int> below;
  double most = 0;
  for (const auto& [host, b] : best) {
    if (told.contains(host) || !b.nominal_known || b.of_nominal >= kFarBelowNominal) continue;
    if (may_be_its_peer(best, b)) continue;
    below.push_back(host);
    most = std::max(most, b.bits_per_second);
  }
  if (!below.empty()) {
    Finding finding = about(hosts, below, n_measured);
    finding.code = "link-below-nominal";
    finding.text = "moves " + rate_text(most) + " at most, and " + at(hosts, below[0]).interface + " runs at " +
                   rate_text(at(hosts, below[0]).speed_mbps * 1e6);
    finding.command = on_host(hosts, below[0], "ethtool " + at(hosts, below[0]).interface);
    add_nominal(hosts, below, finding.details);
    out.push_back(std::move(finding));
  }
  return out;
}

std::vector<Finding> mtu_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report) {
  std::vector<Finding> out;
  find_mtu_mismatch(hosts, out);
  find_path_mtu(hosts, report, out);
  return out;
}

std::vector<Finding> sharing_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                      const std::set<int>& named) {
  std::vector<Finding> out;
  const netdetect::Edges first = netdetect::edges_of(report.links), alone = netdetect::edges_of(report.second_pass);
  for (const auto& [pair, edge] : first) {
    if (!wired(at(hosts, pair.first), at(hosts, pair.second))) return out;
  }

  const netdetect::RingRate& ring = report.ring;
  std::vector<double> shares;
  double all_rates = 0, pair_rates = 0;
  for (std::size_t i = 0; i < ring.order.size() && i < ring.bits_per_second.size(); ++i) {
    const netdetect::HostPair pair{ring.order[i], ring.order[(i + 1) % ring.order.size()]};
    if (named.contains(pair.first) || named.contains(pair.second) || ring.bits_per_second[i] <= 0) continue;
    // First-pass pairs share the network, too; the rate of a pair alone is the better measure.
    const auto one = alone.find(pair);
    const auto other = first.find(pair);
    double rate = other == first.end() ? 0 : other->second.bits_per_second;
    if (one != alone.end()) rate = std::max(rate, one->second.bits_per_second);
    if (rate <= 0) continue;
    shares.push_back(ring.bits_per_second[i] / rate);
    all_rates += ring.bits_per_second[i];
    pair_rates += rate;
  }
  // At least four links, and three of four must be slower: one slow link makes no oversubscribed switch.
  if (shares.size() >= 4 && netdetect::quantile(shares, 0.75) < kOversubscribed) {
    const double share = netdetect::median(shares);
    Finding finding;
    finding.severity = share < kVeryOversubscribed ? Severity::kWarning : Severity::kNote;
    finding.code = "link-oversubscribed";
    finding.subject = "all hosts";
    const auto n = static_cast<double>(shares.size());
    finding.text = "with all hosts at once a link moves " + rate_text(all_rates / n) + ", in pairs " +
                   rate_text(pair_rates / n) + ": what connects the hosts is shared";
    finding.command = "drun bench -o all_reduce -b 1M -e 64M -f 4";
    out.push_back(std::move(finding));
  }

  std::vector<double> gains, several;
  for (const auto& [pair, edge] : first) {
    if (named.contains(pair.first) || named.contains(pair.second)) continue;
    if (edge.one_stream <= 0 || edge.several_streams <= 0) continue;
    gains.push_back(edge.several_streams / edge.one_stream);
    several.push_back(edge.several_streams);
  }
  // Three of four links must gain, because several connections lose by chance as often as they gain.
  // With few links chance may favor all of them, so the gain must be larger.
  const double min_gain = gains.size() < 6 ? kFewStreamsHelp : kStreamsHelp;
  if (!gains.empty() && netdetect::quantile(gains, 0.25) >= min_gain) {
    Finding finding;
    finding.severity = Severity::kNote;
    finding.code = "more-streams";
    finding.subject = "all hosts";
    const double gain = netdetect::median(gains);
    finding.text = "4 connections move " + rate_text(netdetect::median(several)) + ", one " +
                   rate_text(netdetect::median(several) / gain);
    finding.command = "drun run -x DRUN_STREAMS=4 -x NCCL_SOCKET_NTHREADS=4 ...";
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace drun::check
