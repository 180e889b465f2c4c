#include "check/link_findings.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "check/link_anomalies.h"
#include "check/link_limits.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

// A host that was not measured again is slow only if all its links are below this share of the usual rate, which
// scatter does not explain.
constexpr double kUnmistakable = 0.1;
// A host is lossy by the first pass alone if it lost more than this share, and either this many connections to good
// hosts broke off in the second pass, or there was no time for that and the segments were paced, so that no queue was
// full.
constexpr double kMuchLoss = 0.02;
constexpr int kFailed = 2;
// Ratio of one direction to the other, when both are loaded at once over the same cable.
constexpr double kAsymmetric = 3;
// The same for two hosts alone, when there is nothing else to compare with.
constexpr double kAsymmetricPair = 4;
// A lone pair is one of many, so chance gets many tries: a pair must be worse than a host.
constexpr double kLonePairBelow = 1.0 / 3;
// Number of lossy pairs that count as one lossy host, if it is in all of them.
constexpr std::size_t kPairsOfOneHost = 3;
// Full queues drop packets, too, and the queues of a link that was negotiated too slow are always full. The losses of
// such a link count only if at least this many segments were paced below its rate.
constexpr std::uint64_t kEnoughPaced = 300;
// Round trips above these make small allreduces slow, rather than being merely longer.
constexpr double kFarWarningFactor = 10, kFarWarningUs = 1000;

// Minimum loss that the evidence shows, because any link retransmits some segments.
constexpr double kLossWorthSaying = 0.0005;

// The directions by which a host or a pair is judged: those of the second pass, else those of the first.
using Evidence = std::vector<std::pair<netdetect::HostPair, const netdetect::Edge*>>;

double typical_rate(const Evidence& evidence) {
  std::vector<double> rates;
  for (const auto& [pair, edge] : evidence) {
    if (edge->bits_per_second > 0) rates.push_back(edge->bits_per_second);
  }
  return netdetect::median(std::move(rates));
}

netdetect::Edge pooled(const Evidence& evidence) {
  netdetect::Edge out;
  out.paced = std::all_of(evidence.begin(), evidence.end(), [](const auto& e) { return e.second->paced; });
  for (const auto& [pair, edge] : evidence) {
    out.n_segments += edge->n_segments;
    out.n_retransmits += edge->n_retransmits;
  }
  return out;
}

// Only the evidence of paced streams.
Evidence held(Evidence evidence) {
  std::erase_if(evidence, [](const auto& e) { return !e.second->paced; });
  return evidence;
}

class Diagnosis {
 public:
  Diagnosis(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report)
      : hosts_(hosts),
        first_(netdetect::edges_of(between_machines(hosts, report.links))),
        second_(netdetect::edges_of(between_machines(hosts, report.second_pass))),
        usual_first_(usual_of(first_, on_one_machine(hosts))),
        anomalies_(find_anomalies(first_, usual_first_)) {
    const std::set<netdetect::HostPair> bad_pairs = anomalies_.pairs();
    for (auto& [pair, edge] : second_) {
      edge.path_mtu = std::max(edge.path_mtu, path_mtu_before(pair));  // it is not measured again
      if (!anomalies_.good(pair.first) || !anomalies_.good(pair.second)) continue;
      if (!bad_pairs.contains(std::minmax(pair.first, pair.second))) controls_.emplace(pair, edge);
    }
    usual_ = usual_of_controls(controls_, usual_first_);
  }

  std::vector<Finding> findings() {
    for (const int host : anomalies_.doubted()) diagnose_host(host);
    std::set<netdetect::HostPair> pairs = anomalies_.pairs();
    if (pairs.empty() && first_.size() == 2) pairs.insert(first_.begin()->first);
    for (const netdetect::HostPair& pair : pairs) diagnose_pair(pair);
    if (const auto host = shared_by_lossy_pairs()) put_losses_on(*host);
    return std::move(findings_);
  }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].name; }
  const std::string& interface(int host) const { return hosts_[static_cast<std::size_t>(host)].interface; }

  int path_mtu_before(const netdetect::HostPair& pair) const {
    const auto at = first_.find(pair);
    return at == first_.end() ? 0 : at->second.path_mtu;
  }

  // The directions from `host` to good hosts (from good hosts to `host`).
  Evidence evidence(const netdetect::Edges& edges, int host, bool sends) const {
    Evidence out;
    for (const auto& [pair, edge] : edges) {
      const int peer = sends ? pair.second : pair.first;
      if ((sends ? pair.first : pair.second) != host || !anomalies_.good(peer)) continue;
      out.emplace_back(pair, &edge);
    }
    return out;
  }

  // True if the second pass measured a rate between `host` and a good host.
  bool measured_again(int host) const {
    return std::any_of(second_.begin(), second_.end(), [&](const auto& item) {
      const auto& [pair, edge] = item;
      const int peer = pair.first == host ? pair.second : pair.first;
      return (pair.first == host || pair.second == host) && anomalies_.good(peer) && edge.bits_per_second > 0;
    });
  }

  // True if at least two connections to good hosts broke off, as they do under heavy loss; a single one may have had
  // another reason.
  bool broke_off_again(int host) const {
    const Evidence all = evidence(second_, host, true);
    return std::count_if(all.begin(), all.end(), [](const auto& e) { return e.second->failed(); }) >= kFailed;
  }

  bool confirmed_slow(int host, bool sends) const {
    if (!anomalies_.slow.blames(host, sends)) return false;
    const bool again = measured_again(host);
    Evidence all = evidence(again ? second_ : first_, host, sends);
    std::erase_if(all, [](const auto& e) { return e.second->bits_per_second <= 0; });
    Usual usual = again ? usual_ : usual_first_;
    if (!again) usual.slow_below = kUnmistakable * usual_first_.bits_per_second;
    return !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& e) { return slow(*e.second, usual); });
  }

  bool confirmed_lossy(int host, bool sends) const {
    if (anomalies_.left_out.contains(host) && proven_lossy(host, sends)) return true;
    if (!anomalies_.lossy.blames(host, sends)) return false;
    const netdetect::Edge all = pooled(evidence(second_, host, sends));
    return (!controls_.empty() || enough_paced(all)) && lossy(all, usual_);
  }

  // True if enough segments were paced below the link's rate to show the loss: no queue was full.
  bool proven_lossy(int host, bool sends) const {
    const netdetect::Edge all = pooled(held(evidence(second_, host, sends)));
    return enough_paced(all) && lossy(all, usual_);
  }
  static bool enough_paced(const netdetect::Edge& edge) { return edge.paced && edge.n_segments >= kEnoughPaced; }

  // True if a single pass is enough to show the loss.
  bool unmistakably_lossy(const netdetect::Edge& edge) const {
    return enough_paced(edge) && lossy(edge, usual_first_) && edge.loss() > kMuchLoss;
  }

  // Loss by the first pass, because the second one broke off under losses or had no time.
  bool lossy_at_first(int host, bool sends) const {
    if (!anomalies_.lossy.blames(host, sends)) return false;
    const bool seen_again = enough_paced(pooled(held(evidence(second_, host, sends))));
    if (!seen_again && unmistakably_lossy(pooled(held(evidence(first_, host, sends))))) return true;
    if (controls_.empty() || !broke_off_again(host)) return false;
    Evidence all = evidence(first_, host, sends);
    std::erase_if(all, [&](const auto& e) { return !lossy(*e.second, usual_first_); });
    return all.size() >= 2 && pooled(all).loss() > kMuchLoss;
  }

  bool confirmed_far(int host) const {
    if (!anomalies_.far.host(host) || controls_.empty()) return false;
    const Evidence all = evidence(second_, host, true);
    return !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& e) { return far(*e.second, usual_); });
  }

  void diagnose_host(int host) {
    const bool slow_out = confirmed_slow(host, true), slow_in = confirmed_slow(host, false);
    bool lossy_out = confirmed_lossy(host, true), lossy_in = confirmed_lossy(host, false);
    bool again = measured_again(host);
    bool proven = (lossy_out && proven_lossy(host, true)) || (lossy_in && proven_lossy(host, false));
    if (!lossy_out && !lossy_in) {
      lossy_out = lossy_at_first(host, true);
      lossy_in = lossy_at_first(host, false);
      if (lossy_out || lossy_in) proven = true, again = false;
    }
    const netdetect::Edges& edges = again ? second_ : first_;
    const Evidence out = evidence(edges, host, true), in = evidence(edges, host, false);
    const double rate_out = typical_rate(out), rate_in = typical_rate(in);
    const double usual = again ? usual_.bits_per_second : usual_first_.bits_per_second;
    const Unit unit = unit_of({out, in}, usual);
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.hosts = {host};
    finding.subject = interface(host).empty() ? name(host) : name(host) + " " + interface(host);
    const bool looks_negotiated = negotiated_mbps(std::max(rate_out, rate_in)) > 0;
    if ((lossy_out || lossy_in) && (!looks_negotiated || proven)) {
      finding.code = "link-loss";
      finding.text = loss_words(lossy_out ? pooled(out).loss() : 0, lossy_in ? pooled(in).loss() : 0);
      if (slow_out || slow_in)
        finding.text +=
            "; " + rate_words(rate_out, rate_in, slow_out, slow_in, unit) + others_words(usual, again, unit);
      finding.command = "ip -s link show " + interface(host) + "  # on " + name(host);
    } else if (slow_out || slow_in) {
      const bool one_way = slow_out != slow_in || rate_out > kAsymmetric * rate_in || rate_in > kAsymmetric * rate_out;
      finding.code = one_way ? "link-asymmetric" : "link-slow";
      finding.text = rate_words(rate_out, rate_in, slow_out, slow_in, unit) + others_words(usual, again, unit);
      finding.text += negotiated_words(slow_out && slow_in ? std::max(rate_out, rate_in)
                                       : slow_out          ? rate_out
                                                           : rate_in);
      finding.command = "ethtool " + interface(host) + "  # on " + name(host);
      add_nominal(host, finding.details);
    }
    if (!finding.code.empty()) {
      add_figures(finding, {out, in}, again, unit);
      findings_.push_back(finding);
      named_.insert(host);
    }
    if (confirmed_far(host)) add_far(host, out);
  }

  void diagnose_pair(const netdetect::HostPair& pair) {
    if (anomalies_.host(pair.first) || anomalies_.host(pair.second)) return;
    if (named_.contains(pair.first) || named_.contains(pair.second)) return;
    const netdetect::HostPair back{pair.second, pair.first};
    const bool again = second_.contains(pair);
    const netdetect::Edges& edges = again ? second_ : first_;
    const netdetect::Edge &there = edges.at(pair), &home = edges.at(back);
    const bool alone = first_.size() == 2;  // the only two hosts
    Usual usual = usual_;
    usual.slow_below = std::min(usual.slow_below, kLonePairBelow * usual.bits_per_second);
    if (alone) usual = usual_first_;
    const bool comparable = alone || !controls_.empty();
    const auto both = [&](bool (*is)(const netdetect::Edge&, const Usual&), const netdetect::HostPair& way,
                          const netdetect::Edge& second) {
      return again && (comparable || (is == lossy && enough_paced(second))) && is(first_.at(way), usual_first_) &&
             is(second, usual);
    };
    bool slow_there = both(slow, pair, there), slow_home = both(slow, back, home);
    // A second pass with few segments does not disprove the loss: under heavy loss it may have seen only one waiting
    // connection.
    const auto by_first = [&](const netdetect::HostPair& way, const netdetect::Edge& second) {
      return unmistakably_lossy(first_.at(way)) && !(again && enough_paced(second));
    };
    // The measurement that shows the loss; null: none.
    const auto proof = [&](const netdetect::HostPair& way, const netdetect::Edge& second) {
      return by_first(way, second) ? &first_.at(way) : both(lossy, way, second) ? &second : nullptr;
    };
    const netdetect::Edge *const lossy_there = proof(pair, there), *const lossy_home = proof(back, home);
    double usual_rate = usual.bits_per_second;
    if (alone && again) {
      // Only the other direction is there to compare with.
      const auto lags = [&](const netdetect::HostPair& way, const netdetect::HostPair& other) {
        const auto less = [&](const netdetect::Edges& e) {
          return e.at(way).bits_per_second > 0 &&
                 kAsymmetricPair * e.at(way).bits_per_second < e.at(other).bits_per_second;
        };
        return less(first_) && less(second_);
      };
      slow_there = lags(pair, back);
      slow_home = lags(back, pair);
      usual_rate = 0;
    }
    const Evidence own = {{pair, lossy_there ? lossy_there : &there}, {back, lossy_home ? lossy_home : &home}};
    const Unit unit = unit_of({own}, usual.bits_per_second);
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.hosts = {pair.first, pair.second};
    finding.subject = name(pair.first) + " to " + name(pair.second);
    if (lossy_there != nullptr || lossy_home != nullptr) {
      finding.code = "link-loss";
      finding.text = pair_loss_words(pair, lossy_there ? lossy_there->loss() : 0, lossy_home ? lossy_home->loss() : 0);
      if (slow_there || slow_home) finding.text += "; " + pair_rate_words(there, home, usual_rate, unit);
      finding.command = "ip -s link show " + interface(pair.first) + "  # on " + name(pair.first) +
                        ", and likewise on " + name(pair.second);
    } else if (slow_there || slow_home) {
      const double r = there.bits_per_second, s = home.bits_per_second;
      finding.code =
          slow_there != slow_home || r > kAsymmetric * s || s > kAsymmetric * r ? "link-asymmetric" : "link-slow";
      finding.text = pair_rate_words(there, home, usual_rate, unit);
      if (!alone) finding.text += "; both are fast with others";
      finding.command = "tracepath " + name(pair.second) + "  # on " + name(pair.first);
      if (alone)
        finding.command = "ethtool " + interface(pair.first) + "  # on " + name(pair.first) + ", and likewise on " +
                          name(pair.second);
    }
    if (!finding.code.empty()) {
      add_figures(finding, {own}, !alone, unit);
      findings_.push_back(finding);
    }
    if (!alone && both(far, pair, there)) {
      Finding longer = far_finding(there.rtt_us);
      longer.hosts = {pair.first, pair.second};
      longer.subject = name(pair.first) + " to " + name(pair.second);
      longer.command = "tracepath " + name(pair.second) + "  # on " + name(pair.first);
      findings_.push_back(longer);
    }
  }

  static bool is_lossy_pair(const Finding& finding) { return finding.code == "link-loss" && finding.hosts.size() == 2; }

  // This many pairs, each found lossy in both passes, would hardly share a host by chance. That holds even if the
  // host's directions did not stand out, because the loss of short transfers varies by chance.
  std::optional<int> shared_by_lossy_pairs() const {
    std::map<int, std::size_t> n_of_host;
    std::size_t n = 0;
    for (const Finding& finding : findings_) {
      if (!is_lossy_pair(finding)) continue;
      ++n;
      for (const int host : finding.hosts) ++n_of_host[host];
    }
    if (n < kPairsOfOneHost) return std::nullopt;
    const auto all = std::find_if(n_of_host.begin(), n_of_host.end(), [n](const auto& of) { return of.second == n; });
    return all == n_of_host.end() ? std::nullopt : std::optional(all->first);
  }

  void put_losses_on(int host) {
    std::erase_if(findings_, is_lossy_pair);
    const Evidence out = evidence(second_, host, true), in = evidence(second_, host, false);
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.code = "link-loss";
    finding.hosts = {host};
    finding.subject = name(host) + " " + interface(host);
    finding.text = loss_words(pooled(out).loss(), pooled(in).loss());
    finding.command = "ip -s link show " + interface(host) + "  # on " + name(host);
    add_figures(finding, {out, in}, true, unit_of({out, in}, usual_.bits_per_second));
    findings_.push_back(finding);
  }

  void add_far(int host, const Evidence& evidence) {
    std::vector<double> rtts;
    for (const auto& [pair, edge] : evidence) rtts.push_back(edge->rtt_us);
    Finding finding = far_finding(netdetect::median(std::move(rtts)));
    finding.hosts = {host};
    finding.subject = name(host) + " " + interface(host);
    finding.command = "tracepath " + name(evidence.front().first.second) + "  # on " + name(host);
    for (const auto& [pair, edge] : evidence) {
      finding.details.push_back("with " + name(pair.second) + ": " + time_text(edge->rtt_us / 1e6) + ", at least " +
                                time_text(edge->rtt_min_us / 1e6));
    }
    findings_.push_back(finding);
  }

  Finding far_finding(double rtt_us) const {
    Finding finding;
    const bool much = rtt_us >= kFarWarningFactor * usual_.rtt_us && rtt_us >= usual_.rtt_us + kFarWarningUs;
    finding.severity = much ? Severity::kWarning : Severity::kNote;
    finding.code = "link-latency";
    finding.text =
        "a round trip takes " + time_text(rtt_us / 1e6) + ", between others " + time_text(usual_.rtt_us / 1e6);
    return finding;
  }

  // The unit of its own figures and those of others.
  static Unit unit_of(const std::vector<Evidence>& own, double usual) {
    double least = usual;
    for (const Evidence& evidence : own) {
      for (const auto& [pair, edge] : evidence) {
        if (edge->bits_per_second > 0) least = std::min(least, edge->bits_per_second);
      }
    }
    return rate_unit(usual, least);
  }

  static std::string rate_words(double out, double in, bool slow_out, bool slow_in, const Unit& unit) {
    if (slow_out && slow_in && out < 1.5 * in && in < 1.5 * out) return "moves " + unit.text(std::min(out, in));
    if (slow_out && !slow_in) return "sends " + unit.text(out) + " but receives " + unit.text(in);
    if (slow_in && !slow_out) return "receives " + unit.text(in) + " but sends " + unit.text(out);
    return "sends " + unit.text(out) + " and receives " + unit.text(in);
  }

  // The second pass has no other traffic on the network, so its links are faster than the median of all.
  static std::string others_words(double usual, bool again, const Unit& unit) {
    return ", others move " + unit.text(usual) + (again ? " measured the same way" : "");
  }

  static std::string pair_rate_words(const netdetect::Edge& there, const netdetect::Edge& home, double usual,
                                     const Unit& unit) {
    std::string text =
        "moves " + unit.text(there.bits_per_second) + " there and " + unit.text(home.bits_per_second) + " back";
    if (usual > 0) text += others_words(usual, true, unit);
    return text;
  }

  static std::string loss_words(double out, double in) {
    if (out > 0 && in > 0) {
      return share_text(out) + " of what it sends and " + share_text(in) +
             " of what it receives is lost and sent again";
    }
    return share_text(std::max(out, in)) + " of what it " + (out > 0 ? "sends" : "receives") +
           " is lost and sent again";
  }

  std::string pair_loss_words(const netdetect::HostPair& pair, double there, double home) const {
    if (there > 0 && home > 0)
      return share_text(there) + " there and " + share_text(home) + " back is lost and sent again";
    return share_text(std::max(there, home)) + " of what " + name(there > 0 ? pair.first : pair.second) +
           " sends is lost and sent again";
  }

  void add_nominal(int host, std::vector<std::string>& details) const {
    const int own = hosts_[static_cast<std::size_t>(host)].speed_mbps;
    int best = 0;
    for (const LinkHost& other : hosts_) best = std::max(best, other.speed_mbps);
    if (own <= 0) return;
    std::string line = interface(host) + " says that it runs at " + rate_text(own * 1e6);
    if (best > own) line += ", those of other hosts at up to " + rate_text(best * 1e6);
    details.push_back(line);
  }

  // Adds its own figures and, to compare, those of good hosts with each other.
  void add_figures(Finding& finding, const std::vector<Evidence>& own, bool compare, const Unit& unit) const {
    for (const Evidence& evidence : own) add_evidence(evidence, unit, finding.details);
    if (!compare) return;
    Evidence controls;
    for (const auto& [pair, edge] : controls_) controls.emplace_back(pair, &edge);
    add_evidence(controls, unit, finding.comparison);
  }

  void add_evidence(const Evidence& evidence, const Unit& unit, std::vector<std::string>& lines) const {
    for (std::size_t i = 0; i < evidence.size() && i < netdetect::kHostsShown; ++i) {
      const auto& [pair, edge] = evidence[i];
      std::string line = name(pair.first) + " to " + name(pair.second) + ": ";
      line += edge->bits_per_second > 0 ? unit.text(edge->bits_per_second) : "nothing came through";
      if (edge->loss() >= kLossWorthSaying) line += ", " + share_text(edge->loss()) + " sent again";
      lines.push_back(line);
    }
  }

  const std::vector<LinkHost>& hosts_;
  netdetect::Edges first_, second_, controls_;
  Usual usual_first_, usual_;
  Anomalies anomalies_;
  std::set<int> named_;  // hosts with a finding of their own
  std::vector<Finding> findings_;
};

}  // namespace

bool on_one_machine(const std::vector<LinkHost>& hosts) {
  std::set<std::string> machines;
  for (const auto& host : hosts) {
    if (!host.interface.empty()) machines.insert(host.machine);
  }
  return machines.size() == 1 && !machines.begin()->empty();
}

std::vector<netdetect::Link> between_machines(const std::vector<LinkHost>& hosts,
                                              const std::vector<netdetect::Link>& links) {
  if (on_one_machine(hosts)) return links;
  std::vector<netdetect::Link> out;
  for (const netdetect::Link& link : links) {
    const auto& a = hosts[static_cast<std::size_t>(link.a)].machine;
    if (a.empty() || a != hosts[static_cast<std::size_t>(link.b)].machine) out.push_back(link);
  }
  return out;
}

LinkHost link_host(std::string name, std::string machine, const std::optional<netdetect::HostChoice>& choice,
                   const std::vector<netdetect::Interface>& interfaces) {
  LinkHost out;
  out.name = std::move(name);
  out.machine = std::move(machine);
  if (!choice) return out;
  out.interface = choice->interface;
  const auto at = std::find_if(interfaces.begin(), interfaces.end(),
                               [&](const netdetect::Interface& i) { return i.name == choice->interface; });
  if (at == interfaces.end()) return out;
  out.kind = at->kind;
  out.mtu = at->mtu;
  out.speed_mbps = at->speed_mbps;
  return out;
}

std::vector<Finding> link_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report) {
  std::vector<Finding> out = Diagnosis(hosts, report).findings();
  std::set<int> named, lossy;
  for (const Finding& finding : out) {
    named.insert(finding.hosts.begin(), finding.hosts.end());
    if (finding.code == "link-loss" && finding.hosts.size() == 1) lossy.insert(finding.hosts[0]);
  }
  const auto limits = report.max_rate > 0 ? std::vector<Finding>() : rate_limit_findings(hosts, report, named);
  for (auto& more : {unmeasured_findings(hosts, report, lossy), limits, mtu_findings(hosts, report),
                     sharing_findings(hosts, report, named)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace drun::check
