#include "check/link_verdicts.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/link_anomalies.h"
#include "check/link_limits.h"

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

netdetect::Edge pooled(const Evidence& evidence) {
  netdetect::Edge out;
  out.paced = std::all_of(evidence.begin(), evidence.end(), [](const auto& e) { return e.second.paced; });
  for (const auto& [pair, edge] : evidence) {
    out.n_segments += edge.n_segments;
    out.n_retransmits += edge.n_retransmits;
  }
  return out;
}

// Only the evidence of paced streams.
Evidence paced_only(Evidence evidence) {
  std::erase_if(evidence, [](const auto& e) { return !e.second.paced; });
  return evidence;
}

bool enough_paced(const netdetect::Edge& edge) { return edge.paced && edge.n_segments >= kEnoughPaced; }

class Judgement {
 public:
  Judgement(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report)
      : first_(netdetect::edges_of(between_machines(hosts, report.links))),
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

  LinkVerdicts verdicts() {
    for (const int host : anomalies_.doubted()) judge_host(host);
    std::set<netdetect::HostPair> pairs = anomalies_.pairs();
    if (pairs.empty() && first_.size() == 2) pairs.insert(first_.begin()->first);
    for (const netdetect::HostPair& pair : pairs) judge_pair(pair);
    if (const auto host = shared_by_lossy_pairs()) attribute_losses_to(*host);
    out_.controls.assign(controls_.begin(), controls_.end());
    out_.usual_rtt_us = usual_.rtt_us;
    return std::move(out_);
  }

 private:
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
      out.emplace_back(pair, edge);
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
    return std::count_if(all.begin(), all.end(), [](const auto& e) { return e.second.failed(); }) >= kFailed;
  }

  bool confirmed_slow(int host, bool sends) const {
    if (!anomalies_.slow.blames(host, sends)) return false;
    const bool again = measured_again(host);
    Evidence all = evidence(again ? second_ : first_, host, sends);
    std::erase_if(all, [](const auto& e) { return e.second.bits_per_second <= 0; });
    Usual usual = again ? usual_ : usual_first_;
    if (!again) usual.slow_below = kUnmistakable * usual_first_.bits_per_second;
    return !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& e) { return slow(e.second, usual); });
  }

  bool confirmed_lossy(int host, bool sends) const {
    if (anomalies_.left_out.contains(host) && proven_lossy(host, sends)) return true;
    if (!anomalies_.lossy.blames(host, sends)) return false;
    const netdetect::Edge all = pooled(evidence(second_, host, sends));
    return (!controls_.empty() || enough_paced(all)) && lossy(all, usual_);
  }

  // True if enough segments were paced below the link's rate to show the loss: no queue was full.
  bool proven_lossy(int host, bool sends) const {
    const netdetect::Edge all = pooled(paced_only(evidence(second_, host, sends)));
    return enough_paced(all) && lossy(all, usual_);
  }

  // True if a single pass is enough to show the loss.
  bool unmistakably_lossy(const netdetect::Edge& edge) const {
    return enough_paced(edge) && lossy(edge, usual_first_) && edge.loss() > kMuchLoss;
  }

  // Loss by the first pass, because the second one broke off under losses or had no time.
  bool lossy_at_first(int host, bool sends) const {
    if (!anomalies_.lossy.blames(host, sends)) return false;
    const bool seen_again = enough_paced(pooled(paced_only(evidence(second_, host, sends))));
    if (!seen_again && unmistakably_lossy(pooled(paced_only(evidence(first_, host, sends))))) return true;
    if (controls_.empty() || !broke_off_again(host)) return false;
    Evidence all = evidence(first_, host, sends);
    std::erase_if(all, [&](const auto& e) { return !lossy(e.second, usual_first_); });
    return all.size() >= 2 && pooled(all).loss() > kMuchLoss;
  }

  bool confirmed_far(int host) const {
    if (!anomalies_.far.host(host) || controls_.empty()) return false;
    const Evidence all = evidence(second_, host, true);
    return !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& e) { return far(e.second, usual_); });
  }

  void judge_host(int host) {
    HostVerdict verdict;
    verdict.host = host;
    verdict.slow_out = confirmed_slow(host, true);
    verdict.slow_in = confirmed_slow(host, false);
    verdict.lossy_out = confirmed_lossy(host, true);
    verdict.lossy_in = confirmed_lossy(host, false);
    verdict.again = measured_again(host);
    bool proven = (verdict.lossy_out && proven_lossy(host, true)) || (verdict.lossy_in && proven_lossy(host, false));
    if (!verdict.lossy_out && !verdict.lossy_in) {
      verdict.lossy_out = lossy_at_first(host, true);
      verdict.lossy_in = lossy_at_first(host, false);
      if (verdict.lossy_out || verdict.lossy_in) proven = true, verdict.again = false;
    }
    const netdetect::Edges& edges = verdict.again ? second_ : first_;
    verdict.out = evidence(edges, host, true);
    verdict.in = evidence(edges, host, false);
    verdict.usual_rate = verdict.again ? usual_.bits_per_second : usual_first_.bits_per_second;
    verdict.far = confirmed_far(host);
    const double rate_out = typical_rate(verdict.out), rate_in = typical_rate(verdict.in);
    const bool looks_negotiated = negotiated_mbps(std::max(rate_out, rate_in)) > 0;
    if ((verdict.lossy_out || verdict.lossy_in) && (!looks_negotiated || proven)) {
      verdict.fault = LinkFault::kLoss;
    } else if (verdict.slow_out || verdict.slow_in) {
      verdict.fault = slow_fault(verdict.slow_out != verdict.slow_in, rate_out, rate_in);
    }
    if (verdict.fault == LinkFault::kNone && !verdict.far) return;
    if (verdict.fault != LinkFault::kNone) faulty_.insert(host);
    out_.hosts.push_back(std::move(verdict));
  }

  static LinkFault slow_fault(bool one_direction, double there, double back) {
    const bool asymmetric = one_direction || there > kAsymmetric * back || back > kAsymmetric * there;
    return asymmetric ? LinkFault::kAsymmetric : LinkFault::kSlow;
  }

  void judge_pair(const netdetect::HostPair& pair) {
    if (anomalies_.host(pair.first) || anomalies_.host(pair.second)) return;
    if (faulty_.contains(pair.first) || faulty_.contains(pair.second)) return;
    const netdetect::HostPair back{pair.second, pair.first};
    const bool again = second_.contains(pair);
    const netdetect::Edges& edges = again ? second_ : first_;
    PairVerdict verdict;
    verdict.pair = pair;
    verdict.there = edges.at(pair);
    verdict.back = edges.at(back);
    verdict.alone = first_.size() == 2;
    const Usual usual = usual_of_pair(verdict.alone);
    verdict.usual_rate = usual.bits_per_second;
    const bool comparable = verdict.alone || !controls_.empty();
    const auto both = [&](bool (*is)(const netdetect::Edge&, const Usual&), const netdetect::HostPair& direction,
                          const netdetect::Edge& second) {
      return again && (comparable || (is == lossy && enough_paced(second))) && is(first_.at(direction), usual_first_) &&
             is(second, usual);
    };
    verdict.slow_there = both(slow, pair, verdict.there);
    verdict.slow_back = both(slow, back, verdict.back);
    // A second pass with few segments does not disprove the loss: under heavy loss it may have seen only one waiting
    // connection.
    const auto by_first = [&](const netdetect::HostPair& direction, const netdetect::Edge& second) {
      return unmistakably_lossy(first_.at(direction)) && !(again && enough_paced(second));
    };
    // The measurement that shows the loss; null: none.
    const auto proof = [&](const netdetect::HostPair& direction, const netdetect::Edge& second) {
      return by_first(direction, second) ? &first_.at(direction) : both(lossy, direction, second) ? &second : nullptr;
    };
    const netdetect::Edge* const lossy_there = proof(pair, verdict.there);
    const netdetect::Edge* const lossy_back = proof(back, verdict.back);
    if (lossy_there != nullptr) verdict.loss_there = lossy_there->loss();
    if (lossy_back != nullptr) verdict.loss_back = lossy_back->loss();
    if (verdict.alone && again) {
      verdict.slow_there = lags(pair, back);
      verdict.slow_back = lags(back, pair);
      verdict.compared_with_each_other = true;
    }
    verdict.evidence = {{pair, lossy_there != nullptr ? *lossy_there : verdict.there},
                        {back, lossy_back != nullptr ? *lossy_back : verdict.back}};
    verdict.far = !verdict.alone && both(far, pair, verdict.there);
    if (lossy_there != nullptr || lossy_back != nullptr) {
      verdict.fault = LinkFault::kLoss;
    } else if (verdict.slow_there || verdict.slow_back) {
      verdict.fault = slow_fault(verdict.slow_there != verdict.slow_back, verdict.there.bits_per_second,
                                 verdict.back.bits_per_second);
    }
    if (verdict.fault != LinkFault::kNone || verdict.far) out_.pairs.push_back(std::move(verdict));
  }

  // The usual figures with which a pair is compared.
  Usual usual_of_pair(bool alone) const {
    if (alone) return usual_first_;
    Usual usual = usual_;
    usual.slow_below = std::min(usual.slow_below, kLonePairBelow * usual.bits_per_second);
    return usual;
  }

  // True if a direction is far slower than the opposite one in both passes. With two hosts only the other direction is
  // there to compare with.
  bool lags(const netdetect::HostPair& direction, const netdetect::HostPair& opposite) const {
    const auto less = [&](const netdetect::Edges& e) {
      return e.at(direction).bits_per_second > 0 &&
             kAsymmetricPair * e.at(direction).bits_per_second < e.at(opposite).bits_per_second;
    };
    return less(first_) && less(second_);
  }

  // This many pairs, each found lossy in both passes, would hardly share a host by chance. That holds even if the
  // host's directions did not stand out, because the loss of short transfers varies by chance.
  std::optional<int> shared_by_lossy_pairs() const {
    std::map<int, std::size_t> n_of_host;
    std::size_t n = 0;
    for (const PairVerdict& verdict : out_.pairs) {
      if (verdict.fault != LinkFault::kLoss) continue;
      ++n;
      ++n_of_host[verdict.pair.first];
      ++n_of_host[verdict.pair.second];
    }
    if (n < kPairsOfOneHost) return std::nullopt;
    const auto all = std::find_if(n_of_host.begin(), n_of_host.end(), [n](const auto& of) { return of.second == n; });
    return all == n_of_host.end() ? std::nullopt : std::optional(all->first);
  }

  void attribute_losses_to(int host) {
    for (PairVerdict& verdict : out_.pairs) {
      if (verdict.fault == LinkFault::kLoss) verdict.fault = LinkFault::kNone;
    }
    std::erase_if(out_.pairs, [](const PairVerdict& v) { return v.fault == LinkFault::kNone && !v.far; });
    HostVerdict verdict;
    verdict.host = host;
    verdict.fault = LinkFault::kLoss;
    verdict.lossy_out = verdict.lossy_in = true;
    verdict.again = true;
    verdict.out = evidence(second_, host, true);
    verdict.in = evidence(second_, host, false);
    verdict.usual_rate = usual_.bits_per_second;
    out_.shared_by_lossy_pairs = std::move(verdict);
  }

  netdetect::Edges first_, second_, controls_;
  Usual usual_first_, usual_;
  Anomalies anomalies_;
  std::set<int> faulty_;  // hosts with a fault of their own
  LinkVerdicts out_;
};

}  // namespace

double typical_rate(const Evidence& evidence) {
  std::vector<double> rates;
  for (const auto& [pair, edge] : evidence) {
    if (edge.bits_per_second > 0) rates.push_back(edge.bits_per_second);
  }
  return netdetect::median(std::move(rates));
}

double loss_of(const Evidence& evidence) { return pooled(evidence).loss(); }

LinkVerdicts judge_links(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report) {
  return Judgement(hosts, report).verdicts();
}

}  // namespace drun::check
