#include "check/cost_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "netdetect/link_stats.h"
#include "runtime/policy/allreduce_sizes.h"

namespace drun::check {
namespace {

// Overhead of a message beyond the wire: a header and its check, a system call on both sides and the wait for it. The
// second is for each turn of its core that a rank has to wait for. Calibrated against `drun bench` (perf/prediction).
constexpr double kStepSeconds = 12e-6, kTurnSeconds = 7e-6;
// Limits of a segment of the ring, which is reduced before it is sent on (runtime/src/algorithm/ring.cpp).
constexpr double kSegmentMost = 128 << 10, kSegmentLeast = 8 << 10, kSegmentsPerChunk = 4;
// Memory traffic per reduced byte. The byte is first copied out of the kernel's buffers, which the measured streams
// omitted; then two bytes are read and one is written. The figure is higher than that, because the rank's own core
// does all of it and does not saturate the memory.
constexpr double kTrafficOfAddition = 12;
// A stream of this rate, in bits/s, keeps a core busy at both ends.
constexpr double kBusyRate = 5e9;
// Data that a core's own cache holds is reduced there, by all cores at once.
constexpr double kCacheBytes = 512 << 10, kCacheBytesPerSecond = 50e9;
// Memory traffic per byte of a reduction inside a host: a rank contributes its data, reduces its part of all data,
// and copies the result. It reads three times and writes three times, and written lines that the cache does not hold
// are read first.
constexpr double kTrafficInHost = 8;
// Factors by which a short measurement may be off by chance; larger on links below kSlow bits/s, whose queues hold as
// much as they move. A link that differs by less from the other links of its two ends is assumed to equal them.
constexpr double kChance = 1.6, kChanceOfSlow = 2.2, kSlow = 100e6;
// A link stands out below this share of a ring's usual rate; hosts are worth leaving out for at least this gain.
constexpr double kStandsOut = 0.5, kWorthLeavingOut = 2;

// The algorithm between hosts; the one inside a host is always the same.
enum class Between { kAsLibdrun, kRing, kTree };

class Model {
 public:
  Model(const CostInput& input, const netdetect::LinkReport& report) : input_(input) {
    std::vector<netdetect::Link> links = report.links;
    links.insert(links.end(), report.second_pass.begin(), report.second_pass.end());
    edges_ = netdetect::edges_of(links);
    const std::vector<int>& order = report.ring.order;
    for (std::size_t i = 0; i < order.size() && i < report.ring.bits_per_second.size(); ++i) {
      if (const double rate = report.ring.bits_per_second[i]; rate > 0) {
        ring_[{order[i], order[(i + 1) % order.size()]}] = rate;
      }
    }
    std::vector<double> all_rates, all_rtts, gains;
    for (const auto& [pair, edge] : edges_) {
      const double rate = rate_of(edge);
      if (rate > 0) {
        all_rates.push_back(rate);
        sends_[pair.first].push_back(rate);
        receives_[pair.second].push_back(rate);
      }
      if (edge.rtt_us > 0) all_rtts.push_back(edge.rtt_us);
    }
    usual_rate_ = netdetect::median(std::move(all_rates));
    usual_rtt_us_ = netdetect::median(std::move(all_rtts));
    std::vector<double> left;
    for (const auto& [pair, together] : ring_) {
      const double alone = rate(pair.first, pair.second);
      if (alone > 0) left.push_back(std::min(1.0, together / alone));
    }
    if (!left.empty()) left_together_ = netdetect::median(std::move(left));
    share_machines();
  }

  bool knows_links() const { return usual_rate_ > 0; }
  int slots(int host) const { return input_.slots[static_cast<std::size_t>(host)]; }

  // The rate of one rank's connection, in bits per second.
  double rate(int from, int to) const {
    const auto typical_of = [&](const std::map<int, std::vector<double>>& rates, int host) {
      const auto of_host = rates.find(host);
      return of_host == rates.end() ? usual_rate_ : netdetect::median(of_host->second);
    };
    const double typical = std::min(typical_of(sends_, from), typical_of(receives_, to));
    const auto at = edges_.find({from, to});
    const double known = at == edges_.end() ? 0 : rate_of(at->second);
    const double chance = typical < kSlow ? kChanceOfSlow : kChance;
    const bool by_chance = known * chance > typical && known < chance * typical;
    return known > 0 && !by_chance ? known : typical;
  }

  double alpha(int from, int to) const {
    const auto at = edges_.find({from, to});
    const double rtt_us = at != edges_.end() && at->second.rtt_us > 0 ? at->second.rtt_us : usual_rtt_us_;
    return rtt_us / 2e6 + step_overhead();
  }
  double step_overhead() const { return kStepSeconds + kTurnSeconds * crowding_; }
  // Seconds per reduced byte, in a reduction of `n_bytes`.
  double gamma(double n_bytes) const {
    const double rate = n_bytes <= kCacheBytes ? kCacheBytesPerSecond : memory_bytes_per_second_;
    return kTrafficOfAddition / rate;
  }

  // The rate of each lane. Lanes share a host's links, and together may fill a link that one connection does not.
  double lane_rate(int from, int to, double rate, int n_lanes) const {
    if (n_lanes == 1) return rate;
    double all = rate;
    const auto at = edges_.find({from, to});
    if (at != edges_.end()) all = std::max(all, std::min(n_lanes * rate, at->second.several_streams));
    return all / n_lanes;
  }

  // The rate from each host to the next with all hosts active. A ring is as fast as its slowest link. The rates
  // measured with all hosts at once are not quite that: there each link took bandwidth from others that share a
  // switch or a processor, whereas in a ring they wait for each other. So a link that is faster alone gets up to the
  // mean.
  std::vector<double> ring_rates(const std::vector<int>& hosts) const {
    std::vector<double> out;
    std::vector<std::optional<double>> together;
    double sum = 0;
    int n = 0;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const int from = hosts[i], to = hosts[(i + 1) % hosts.size()];
      out.push_back(rate(from, to));
      const auto at = ring_.find({from, to});
      together.push_back(at == ring_.end() ? std::nullopt : std::optional(at->second));
      if (at != ring_.end()) {
        sum += at->second;
        ++n;
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (together[i]) out[i] = std::max(*together[i], std::min(out[i], sum / n));
    }
    return out;
  }

  double ring_seconds(const std::vector<int>& hosts, double n_bytes, int n_lanes = 1) const {
    const auto p = static_cast<double>(hosts.size());
    const double chunk = n_bytes / p, n_steps = 2 * (p - 1);
    const double segment = std::min(std::clamp(chunk / kSegmentsPerChunk, kSegmentLeast, kSegmentMost), chunk);
    const std::vector<double> rates = ring_rates(hosts);
    const double gamma = this->gamma(n_bytes);
    double longest_step = 0, hops = 0, longest_hop = 0;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const int from = hosts[i], to = hosts[(i + 1) % hosts.size()];
      const double beta = 8 / lane_rate(from, to, rates[i], n_lanes);
      const double hop = alpha(from, to) + segment * (beta + gamma);
      longest_step = std::max(longest_step, chunk * beta);
      longest_hop = std::max(longest_hop, hop);
      hops += hop / p;
    }
    // Either the slowest link always has data to send, or the latency of each byte's path around the ring counts.
    return std::max(n_steps * longest_step, n_steps * hops) + longest_hop + (p - 1) / p * n_bytes * gamma;
  }

  double doubling_seconds(const std::vector<int>& hosts, double n_bytes, int n_lanes = 1) const {
    return tree_seconds(hosts, n_bytes, n_lanes, [&](const auto& step, int power) {
      double sum = 0;
      for (int distance = 1; distance < power; distance *= 2) sum += step(distance, n_bytes) + n_bytes * gamma(n_bytes);
      return sum;
    });
  }

  double halving_seconds(const std::vector<int>& hosts, double n_bytes, int n_lanes = 1) const {
    return tree_seconds(hosts, n_bytes, n_lanes, [&](const auto& step, int power) {
      double sum = 0, part = n_bytes / 2;
      for (int distance = power / 2; distance > 0; distance /= 2, part /= 2) {
        sum += 2 * step(distance, part) + part * gamma(n_bytes);  // there, and back in the second half
      }
      return sum;
    });
  }

  // Time between hosts, for one rank per host or for a lane.
  double network_seconds(const std::vector<int>& hosts, double n_bytes, Between between, int n_lanes = 1) const {
    if (hosts.size() < 2) return 0;
    if (between == Between::kRing) return ring_seconds(hosts, n_bytes, n_lanes);
    if (between == Between::kTree) {
      return std::min(doubling_seconds(hosts, n_bytes, n_lanes), halving_seconds(hosts, n_bytes, n_lanes));
    }
    if (n_bytes <= static_cast<double>(runtime::doubling_bytes(hosts.size())))
      return doubling_seconds(hosts, n_bytes, n_lanes);
    if (n_bytes < static_cast<double>(runtime::ring_bytes(hosts.size())))
      return halving_seconds(hosts, n_bytes, n_lanes);
    return ring_seconds(hosts, n_bytes, n_lanes);
  }

  int n_lanes(const std::vector<int>& hosts) const {
    int least = slots(hosts.front());
    for (const int host : hosts) least = std::min(least, slots(host));
    return least;
  }
  bool several_slots(const std::vector<int>& hosts) const {
    return std::any_of(hosts.begin(), hosts.end(), [&](int host) { return slots(host) > 1; });
  }

  // The network's part of seconds().
  double between_seconds(const std::vector<int>& hosts, double n_bytes, Between between) const {
    if (!several_slots(hosts)) return network_seconds(hosts, n_bytes, between);
    const int lanes = lanes_for(hosts, n_bytes);
    const double lane_bytes = n_bytes / lanes;
    // If the data travels in pieces, libdrun uses the ring for each.
    const bool rings = between == Between::kAsLibdrun && in_pieces(hosts, lane_bytes);
    return network_seconds(hosts, lane_bytes, rings ? Between::kRing : between, lanes);
  }

  double seconds(const std::vector<int>& hosts, double n_bytes, Between between = Between::kAsLibdrun) const {
    const double network = between_seconds(hosts, n_bytes, between);
    if (!several_slots(hosts)) return network;
    int most = 1;
    for (const int host : hosts) most = std::max(most, slots(host));
    const double in_host =
        most < 2 ? 0 : kTrafficInHost * most * n_bytes / memory_bytes_per_second_ + 2 * step_overhead();
    const double lane_bytes = n_bytes / lanes_for(hosts, n_bytes);
    if (!in_pieces(hosts, lane_bytes)) return in_host + network;
    // In pieces, memory and network work at the same time: the total is the longer time, plus one piece of the other.
    // But if ranks wait for each other's cores, memory can't use the core time that the network takes.
    if (crowding_ > 1) {
      const std::vector<double> rates = ring_rates(hosts);
      const double busy = std::min(1.0, *std::min_element(rates.begin(), rates.end()) / kBusyRate);
      return std::max(in_host + busy * network, network);
    }
    const double piece_share = static_cast<double>(runtime::lane_piece_bytes(hosts.size())) / lane_bytes;
    return std::max(in_host, network) + piece_share * std::min(in_host, network);
  }

 private:
  int lanes_for(const std::vector<int>& hosts, double n_bytes) const {
    return n_bytes <= runtime::kOneLaneBytes ? 1 : n_lanes(hosts);
  }
  static bool in_pieces(const std::vector<int>& hosts, double lane_bytes) {
    return lane_bytes > static_cast<double>(runtime::lane_piece_bytes(hosts.size()));
  }

  // Containers of one machine share its memory bandwidth, and wait for turns on its cores: half as many ranks as
  // there are cores run at a time, so a step of all takes 2 * ranks / cores turns.
  void share_machines() {
    std::map<std::string, int> n_on, n_ranks;
    for (std::size_t i = 0; i < input_.slots.size() && i < input_.machines.size(); ++i) {
      if (input_.slots[i] <= 0 || input_.machines[i].empty()) continue;
      n_on[input_.machines[i]] += 1;
      n_ranks[input_.machines[i]] += input_.slots[i];
    }
    double n_sharing = 1;
    for (std::size_t i = 0; i < input_.slots.size() && i < input_.machines.size(); ++i) {
      const auto at = n_on.find(input_.machines[i]);
      if (at == n_on.end() || at->second < 2) continue;
      const double n = at->second;
      const int cores = i < input_.cores.size() ? input_.cores[i] : 0;
      n_sharing = std::max(n_sharing, n);
      crowding_ = std::max(crowding_, cores > 0 ? 2.0 * n_ranks.at(input_.machines[i]) / cores : n);
    }
    memory_bytes_per_second_ = input_.memory_bytes_per_second / n_sharing;
  }

  double rate_of(const netdetect::Edge& edge) const {
    if (input_.n_streams > 1 && edge.several_streams > 0) return std::max(edge.one_stream, edge.several_streams);
    return edge.one_stream > 0 ? edge.one_stream : edge.several_streams;
  }

  template <typename F>
  double tree_seconds(const std::vector<int>& hosts, double n_bytes, int n_lanes, F among_power) const {
    const auto size = static_cast<int>(hosts.size());
    int power = 1;
    while (2 * power <= size) power *= 2;
    const auto one_way = [&](int a, int b, double bytes) {
      const int from = hosts[static_cast<std::size_t>(a)], to = hosts[static_cast<std::size_t>(b)];
      return alpha(from, to) + bytes * 8 / lane_rate(from, to, left_together_ * rate(from, to), n_lanes);
    };
    // Ranks exchange with those at `distance`; the slowest exchange determines the step.
    const auto step = [&](int distance, double bytes) {
      double longest = 0;
      for (int rank = 0; rank < power; ++rank) longest = std::max(longest, one_way(rank, rank ^ distance, bytes));
      return longest;
    };
    double fold = 0;
    for (int rank = power; rank < size; ++rank) {
      fold = std::max(
          fold, one_way(rank, rank - power, n_bytes) + one_way(rank - power, rank, n_bytes) + n_bytes * gamma(n_bytes));
    }
    return fold + among_power(step, power);
  }

  CostInput input_;
  netdetect::Edges edges_;
  std::map<netdetect::HostPair, double> ring_;
  std::map<int, std::vector<double>> sends_, receives_;
  double usual_rate_ = 0, usual_rtt_us_ = 0, crowding_ = 1, memory_bytes_per_second_ = 1;
  double left_together_ = 1;  // share of a link's rate that is left if all hosts use theirs at once
};

void find_slowest(const Model& model, const std::vector<int>& hosts, Prediction& out) {
  const std::vector<double> rates = model.ring_rates(hosts);
  const auto slowest = static_cast<std::size_t>(std::min_element(rates.begin(), rates.end()) - rates.begin());
  // With two hosts, the slower direction; otherwise a link that is clearly slower than the ring's upper quartile.
  if (hosts.size() > 2 && rates[slowest] > kStandsOut * netdetect::quantile(rates, 0.75)) return;
  out.slowest_from = hosts[slowest];
  out.slowest_to = hosts[(slowest + 1) % hosts.size()];
  out.slowest_bits_per_second = rates[slowest];
}

// Candidates are each host alone, and the slowest two, three, ... up to half of all, because leaving out one of two
// slow hosts gains nothing. Takes the candidate with the fewest hosts among those that come near the best.
void find_without(const Model& model, const std::vector<int>& hosts, Prediction& out) {
  if (hosts.size() < 3) return;
  std::vector<std::pair<double, int>> by_rate;
  for (const int host : hosts) {
    std::vector<double> rates;
    for (const int peer : hosts) {
      if (peer != host) rates.push_back(std::min(model.rate(host, peer), model.rate(peer, host)));
    }
    by_rate.emplace_back(netdetect::quantile(std::move(rates), 0.75), host);
  }
  std::stable_sort(by_rate.begin(), by_rate.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::vector<int>> candidates;
  for (const auto& [rate, host] : by_rate) candidates.push_back({host});
  for (std::size_t n = 2; 2 * n <= hosts.size(); ++n) {
    candidates.emplace_back();
    for (std::size_t i = 0; i < n; ++i) candidates.back().push_back(by_rate[i].second);
  }
  std::vector<double> times;
  for (const std::vector<int>& left_out : candidates) {
    std::vector<int> rest;
    std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(rest),
                 [&](int host) { return std::find(left_out.begin(), left_out.end(), host) == left_out.end(); });
    times.push_back(model.seconds(rest, static_cast<double>(out.n_bytes)));
  }
  constexpr double kNearTheBest = 1.5;  // fewer hosts are always a little faster
  const double best = *std::min_element(times.begin(), times.end());
  if (best * kWorthLeavingOut > out.seconds) return;
  std::size_t chosen = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (times[i] > kNearTheBest * best) continue;
    const bool fewer = chosen == candidates.size() || candidates[i].size() < candidates[chosen].size();
    if (fewer) chosen = i;
  }
  out.without = candidates[chosen];
  std::sort(out.without.begin(), out.without.end());
  out.seconds_without = times[chosen];
}

// Powers of two, and the size that was asked for.
std::vector<std::size_t> curve_sizes(std::size_t n_bytes) {
  const std::size_t most = std::max(std::size_t{1} << 30, n_bytes);
  std::set<std::size_t> out = {4};
  while (*out.rbegin() <= most / 2) out.insert(*out.rbegin() * 2);
  if (n_bytes > 0) out.insert(n_bytes);
  return {out.begin(), out.end()};
}

}  // namespace

Prediction predict(const CostInput& input, const netdetect::LinkReport& links, std::size_t n_bytes,
                   double step_seconds) {
  Prediction out;
  out.n_bytes = n_bytes;
  std::vector<int> hosts;
  for (std::size_t i = 0; i < input.slots.size(); ++i) {
    if (input.slots[i] > 0) hosts.push_back(static_cast<int>(i));
  }
  out.n_hosts = static_cast<int>(hosts.size());
  const Model model(input, links);
  if (hosts.size() < 2 || !model.knows_links()) return out;

  for (const std::size_t size : curve_sizes(n_bytes)) {
    const auto bytes = static_cast<double>(size);
    CostPoint point;
    point.n_bytes = size;
    point.seconds = model.seconds(hosts, bytes);
    point.ring_seconds = model.seconds(hosts, bytes, Between::kRing);
    point.tree_seconds = model.seconds(hosts, bytes, Between::kTree);
    out.curve.push_back(point);
  }
  if (n_bytes == 0) return out;
  out.seconds = model.seconds(hosts, static_cast<double>(n_bytes));
  out.network_seconds = model.between_seconds(hosts, static_cast<double>(n_bytes), Between::kAsLibdrun);
  const bool ring = n_bytes > runtime::doubling_bytes(hosts.size()) && n_bytes >= runtime::ring_bytes(hosts.size());
  out.algorithm = model.several_slots(hosts) ? Algorithm::kHierarchical : ring ? Algorithm::kRing : Algorithm::kTree;
  find_slowest(model, hosts, out);
  find_without(model, hosts, out);
  if (step_seconds > 0) {
    out.step_seconds = step_seconds;
    out.efficiency = step_seconds / (step_seconds + out.seconds);
    out.efficiency_overlapped = step_seconds / std::max(step_seconds, out.seconds);
  }
  return out;
}

}  // namespace drun::check
