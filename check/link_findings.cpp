#include "check/link_findings.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "check/link_limits.h"
#include "check/link_verdicts.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

// Round trips above these make small allreduces slow, rather than being merely longer.
constexpr double kFarWarningFactor = 10, kFarWarningUs = 1000;

// Minimum loss that the evidence shows, because any link retransmits some segments.
constexpr double kLossWorthSaying = 0.0005;

const char* code_of(LinkFault fault) {
  switch (fault) {
    case LinkFault::kLoss:
      return "link-loss";
    case LinkFault::kSlow:
      return "link-slow";
    case LinkFault::kAsymmetric:
      return "link-asymmetric";
    case LinkFault::kNone:
      break;
  }
  return "";
}

// The unit of its own figures and those of others.
Unit unit_of(const std::vector<const Evidence*>& own, double usual) {
  double least = usual;
  for (const Evidence* evidence : own) {
    for (const auto& [pair, edge] : *evidence) {
      if (edge.bits_per_second > 0) least = std::min(least, edge.bits_per_second);
    }
  }
  return rate_unit(usual, least);
}

std::string rate_words(double out, double in, bool slow_out, bool slow_in, const Unit& unit) {
  if (slow_out && slow_in && out < 1.5 * in && in < 1.5 * out) return "moves " + unit.text(std::min(out, in));
  if (slow_out && !slow_in) return "sends " + unit.text(out) + " but receives " + unit.text(in);
  if (slow_in && !slow_out) return "receives " + unit.text(in) + " but sends " + unit.text(out);
  return "sends " + unit.text(out) + " and receives " + unit.text(in);
}

// The second pass has no other traffic on the network, so its links are faster than the median of all.
std::string others_words(double usual, bool again, const Unit& unit) {
  return ", others move " + unit.text(usual) + (again ? " measured the same way" : "");
}

std::string pair_rate_words(const netdetect::Edge& there, const netdetect::Edge& back, double usual, const Unit& unit) {
  std::string text =
      "moves " + unit.text(there.bits_per_second) + " there and " + unit.text(back.bits_per_second) + " back";
  if (usual > 0) text += others_words(usual, true, unit);
  return text;
}

std::string loss_words(double out, double in) {
  if (out > 0 && in > 0) {
    return share_text(out) + " of what it sends and " + share_text(in) + " of what it receives is lost and sent again";
  }
  return share_text(std::max(out, in)) + " of what it " + (out > 0 ? "sends" : "receives") + " is lost and sent again";
}

// Puts the verdicts into words.
class Wording {
 public:
  Wording(const std::vector<LinkHost>& hosts, LinkVerdicts verdicts) : hosts_(hosts), verdicts_(std::move(verdicts)) {}

  std::vector<Finding> findings() {
    for (const HostVerdict& verdict : verdicts_.hosts) {
      if (verdict.fault != LinkFault::kNone) out_.push_back(host_finding(verdict));
      if (verdict.far) out_.push_back(far_host_finding(verdict));
    }
    for (const PairVerdict& verdict : verdicts_.pairs) {
      if (verdict.fault != LinkFault::kNone) out_.push_back(pair_finding(verdict));
      if (verdict.far) out_.push_back(far_pair_finding(verdict));
    }
    if (verdicts_.shared_by_lossy_pairs) out_.push_back(host_finding(*verdicts_.shared_by_lossy_pairs));
    return std::move(out_);
  }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].name; }
  const std::string& interface(int host) const { return hosts_[static_cast<std::size_t>(host)].interface; }

  Finding host_finding(const HostVerdict& verdict) const {
    const int host = verdict.host;
    const bool slow = verdict.slow_out || verdict.slow_in;
    const double out = typical_rate(verdict.out), in = typical_rate(verdict.in);
    const Unit unit = unit_of({&verdict.out, &verdict.in}, verdict.usual_rate);
    const std::string rates = rate_words(out, in, verdict.slow_out, verdict.slow_in, unit) +
                              others_words(verdict.usual_rate, verdict.again, unit);
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.code = code_of(verdict.fault);
    finding.hosts = {host};
    finding.subject = interface(host).empty() ? name(host) : name(host) + " " + interface(host);
    if (verdict.fault == LinkFault::kLoss) {
      finding.text =
          loss_words(verdict.lossy_out ? loss_of(verdict.out) : 0, verdict.lossy_in ? loss_of(verdict.in) : 0);
      if (slow) finding.text += "; " + rates;
      finding.command = "ip -s link show " + interface(host) + "  # on " + name(host);
    } else {
      const bool both = verdict.slow_out && verdict.slow_in;
      finding.text = rates + negotiated_words(both ? std::max(out, in) : verdict.slow_out ? out : in);
      finding.command = "ethtool " + interface(host) + "  # on " + name(host);
      add_nominal(host, finding.details);
    }
    add_figures(finding, {&verdict.out, &verdict.in}, verdict.again, unit);
    return finding;
  }

  Finding pair_finding(const PairVerdict& verdict) const {
    const auto& [a, b] = verdict.pair;
    const Unit unit = unit_of({&verdict.evidence}, verdict.usual_rate);
    const std::string rates =
        pair_rate_words(verdict.there, verdict.back, verdict.compared_with_each_other ? 0 : verdict.usual_rate, unit);
    const std::string on_both = interface(a) + "  # on " + name(a) + ", and likewise on " + name(b);
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.code = code_of(verdict.fault);
    finding.hosts = {a, b};
    finding.subject = name(a) + " to " + name(b);
    if (verdict.fault == LinkFault::kLoss) {
      finding.text = pair_loss_words(verdict);
      if (verdict.slow_there || verdict.slow_back) finding.text += "; " + rates;
      finding.command = "ip -s link show " + on_both;
    } else {
      finding.text = rates + (verdict.alone ? "" : "; both are fast with others");
      finding.command = verdict.alone ? "ethtool " + on_both : "tracepath " + name(b) + "  # on " + name(a);
    }
    add_figures(finding, {&verdict.evidence}, !verdict.alone, unit);
    return finding;
  }

  std::string pair_loss_words(const PairVerdict& verdict) const {
    const double there = verdict.loss_there, back = verdict.loss_back;
    if (there > 0 && back > 0)
      return share_text(there) + " there and " + share_text(back) + " back is lost and sent again";
    return share_text(std::max(there, back)) + " of what " +
           name(there > 0 ? verdict.pair.first : verdict.pair.second) + " sends is lost and sent again";
  }

  Finding far_host_finding(const HostVerdict& verdict) const {
    const int host = verdict.host;
    std::vector<double> rtts;
    for (const auto& [pair, edge] : verdict.out) rtts.push_back(edge.rtt_us);
    Finding finding = far_finding(netdetect::median(std::move(rtts)));
    finding.hosts = {host};
    finding.subject = name(host) + " " + interface(host);
    finding.command = "tracepath " + name(verdict.out.front().first.second) + "  # on " + name(host);
    for (const auto& [pair, edge] : verdict.out) {
      finding.details.push_back("with " + name(pair.second) + ": " + time_text(edge.rtt_us / 1e6) + ", at least " +
                                time_text(edge.rtt_min_us / 1e6));
    }
    return finding;
  }

  Finding far_pair_finding(const PairVerdict& verdict) const {
    const auto& [a, b] = verdict.pair;
    Finding finding = far_finding(verdict.there.rtt_us);
    finding.hosts = {a, b};
    finding.subject = name(a) + " to " + name(b);
    finding.command = "tracepath " + name(b) + "  # on " + name(a);
    return finding;
  }

  Finding far_finding(double rtt_us) const {
    const double usual = verdicts_.usual_rtt_us;
    Finding finding;
    const bool much = rtt_us >= kFarWarningFactor * usual && rtt_us >= usual + kFarWarningUs;
    finding.severity = much ? Severity::kWarning : Severity::kNote;
    finding.code = "link-latency";
    finding.text = "a round trip takes " + time_text(rtt_us / 1e6) + ", between others " + time_text(usual / 1e6);
    return finding;
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
  void add_figures(Finding& finding, const std::vector<const Evidence*>& own, bool compare, const Unit& unit) const {
    for (const Evidence* evidence : own) add_evidence(*evidence, unit, finding.details);
    if (compare) add_evidence(verdicts_.controls, unit, finding.comparison);
  }

  void add_evidence(const Evidence& evidence, const Unit& unit, std::vector<std::string>& lines) const {
    for (std::size_t i = 0; i < evidence.size() && i < netdetect::kHostsShown; ++i) {
      const auto& [pair, edge] = evidence[i];
      std::string line = name(pair.first) + " to " + name(pair.second) + ": ";
      line += edge.bits_per_second > 0 ? unit.text(edge.bits_per_second) : "nothing came through";
      if (edge.loss() >= kLossWorthSaying) line += ", " + share_text(edge.loss()) + " sent again";
      lines.push_back(line);
    }
  }

  const std::vector<LinkHost>& hosts_;
  LinkVerdicts verdicts_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> link_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report) {
  std::vector<Finding> out = Wording(hosts, judge_links(hosts, report)).findings();
  std::set<int> named, slow, lossy;
  for (const Finding& finding : out) {
    named.insert(finding.hosts.begin(), finding.hosts.end());
    if (finding.code != "link-latency") slow.insert(finding.hosts.begin(), finding.hosts.end());
    if (finding.code == "link-loss" && finding.hosts.size() == 1) lossy.insert(finding.hosts[0]);
  }
  const auto limits = report.max_rate > 0 ? std::vector<Finding>() : rate_limit_findings(hosts, report, slow);
  for (auto& more : {unmeasured_findings(hosts, report, lossy), limits, mtu_findings(hosts, report),
                     sharing_findings(hosts, report, named)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace drun::check
