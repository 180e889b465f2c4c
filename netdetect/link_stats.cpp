#include "netdetect/link_stats.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace drun::netdetect {
namespace {

constexpr double kSound = 0.6;  // share of the usual rate
// Minimum number of paced segments in the first pass. With fewer, chance dominates, and the segments of full streams
// are used instead. The second pass uses any number, because it judges many pairs together.
constexpr std::uint64_t kFewestPaced = 200;

void add_segments(Edge& edge, const Link& link, const Direction& direction) {
  if (direction.paced.n_segments >= (link.again ? 1 : kFewestPaced)) {
    if (!edge.paced) edge.n_segments = edge.n_retransmits = 0;
    edge.paced = true;
    edge.n_segments += direction.paced.n_segments;
    edge.n_retransmits += direction.paced.n_retransmits;
    return;
  }
  if (edge.paced) return;
  for (const Rate& rate : direction.rates) {
    edge.n_segments += rate.n_segments;
    edge.n_retransmits += rate.n_retransmits;
  }
}

void add(Edge& edge, const Link& link, const Direction& direction) {
  for (const Rate& rate : direction.rates) {
    edge.bits_per_second = std::max(edge.bits_per_second, rate.bits_per_second);
    double& best = rate.n_streams <= 1 ? edge.one_stream : edge.several_streams;
    best = std::max(best, rate.bits_per_second);
  }
  add_segments(edge, link, direction);
  edge.path_mtu = std::max(edge.path_mtu, direction.path_mtu);
  if (edge.error.empty()) edge.error = direction.error;
  if (link.n_round_trips == 0) return;
  edge.rtt_us = edge.rtt_us == 0 ? link.rtt_median_us : std::min(edge.rtt_us, link.rtt_median_us);
  edge.rtt_min_us = edge.rtt_min_us == 0 ? link.rtt_min_us : std::min(edge.rtt_min_us, link.rtt_min_us);
}

// By host: the rates of all its directions, in and out.
std::map<int, std::vector<double>> rates_of_hosts(const Edges& edges) {
  std::map<int, std::vector<double>> out;
  for (const auto& [pair, edge] : edges) {
    if (edge.bits_per_second <= 0) continue;
    out[pair.first].push_back(edge.bits_per_second);
    out[pair.second].push_back(edge.bits_per_second);
  }
  return out;
}

}  // namespace

Edges edges_of(const std::vector<Link>& links) {
  Edges out;
  for (const Link& link : links) {
    add(out[{link.a, link.b}], link, link.forward);
    add(out[{link.b, link.a}], link, link.backward);
  }
  return out;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = static_cast<std::ptrdiff_t>(std::ceil(share * last - 1e-9));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double usual_rate(const Edges& edges) {
  std::vector<double> of_hosts;
  for (auto& [host, rates] : rates_of_hosts(edges)) of_hosts.push_back(quantile(std::move(rates), 0.75));
  return median(std::move(of_hosts));
}

std::set<int> crawling_hosts(const std::vector<Link>& links, int n_streams) {
  constexpr double kTimes = 5, kSlowInAnyCase = 100e6;
  constexpr int kEnoughPeers = 3;
  const double usual = usual_rate(edges_of(links));
  std::map<int, int> n_peers;
  std::map<int, double> best;
  for (const Link& link : links) {
    double rate = 0;
    bool measured = false;
    for (const Direction* direction : {&link.forward, &link.backward}) {
      for (const Rate& r : direction->rates) {
        rate = std::max(rate, r.bits_per_second);
        measured = measured || r.n_streams == n_streams;
      }
    }
    if (!measured) continue;
    for (const int host : {link.a, link.b}) {
      ++n_peers[host];
      best[host] = std::max(best[host], rate);
    }
  }
  std::set<int> out;
  for (const auto& [host, rate] : best) {
    if (n_peers[host] >= kEnoughPeers && rate < std::min(kSlowInAnyCase, usual / kTimes)) out.insert(host);
  }
  return out;
}

std::set<int> left_out_hosts(const Edges& edges) {
  constexpr double kMax = 0.5, kTimesUsual = 2;
  std::map<int, std::pair<int, int>> n_of_hosts;  // left out, and all
  for (const auto& [pair, edge] : edges) {
    const bool left_out = edge.bits_per_second <= 0 && edge.n_segments == 0 && edge.error.empty();
    for (const int host : {pair.first, pair.second}) {
      n_of_hosts[host].first += left_out ? 1 : 0;
      n_of_hosts[host].second += 1;
    }
  }
  const auto share = [](const std::pair<int, int>& n) { return static_cast<double>(n.first) / n.second; };
  std::vector<double> shares;
  for (const auto& [host, n] : n_of_hosts) shares.push_back(share(n));
  const double usual = median(std::move(shares));
  std::set<int> out;
  for (const auto& [host, n] : n_of_hosts) {
    if (share(n) > kMax && share(n) >= kTimesUsual * usual) out.insert(host);
  }
  return out;
}

double evenness(const Edges& edges, double usual) {
  if (usual <= 0) return 0;
  std::set<int> sound;
  for (auto& [host, rates] : rates_of_hosts(edges)) {
    // The upper quartile, as in usual_rate(): it stays the same if half of the host's peers are slow.
    if (quantile(std::move(rates), 0.75) >= kSound * usual) sound.insert(host);
  }
  std::vector<double> rates;
  for (const auto& [pair, edge] : edges) {
    if (edge.bits_per_second <= 0 || !sound.contains(pair.first) || !sound.contains(pair.second)) continue;
    rates.push_back(edge.bits_per_second);
  }
  if (rates.empty()) return 0;
  // Rounded down: with few links, the slowest.
  std::sort(rates.begin(), rates.end());
  return std::min(1.0, rates[(rates.size() - 1) / 5] / usual);
}

}  // namespace drun::netdetect
