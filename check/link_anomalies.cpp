#include "check/link_anomalies.h"

#include <algorithm>
#include <cmath>

namespace drun::check {
namespace {

// A direction is slow below this share of the rate of the lower fifth of sound links...
constexpr double kBelowSound = 0.7;
// ...but never above the first share of the usual rate (ordinary scatter), and always below the second: links of
// machines that are busy with other work differ by a factor of three, bad links by ten.
constexpr double kSlowAtMost = 0.7, kSlowAtLeast = 0.15;
// TCP itself causes losses, because it sends faster until packets are dropped. Up to 1 % is ordinary.
constexpr double kLossAtLeast = 0.01, kLossFactor = 3, kAnomalyFactor = 1.2;
constexpr std::uint64_t kMinRetransmits = 3;
constexpr double kTimesMathis = 1.5;
constexpr int kHeaders = 52, kUsualSegment = 1448;  // bytes; of IPv4 and of TCP with timestamps
// Round trips within a network differ by a few switches and by the delay of a busy core. The shortest round trip has
// little of the latter, and a link that is far is far in every round trip.
constexpr double kFarFactor = 3, kFarAtLeastUs = 300;
constexpr double kFarMinFactor = 3, kFarMinAtLeastUs = 150;

std::vector<double> values(const netdetect::Edges& edges, double (*of)(const netdetect::Edge&)) {
  std::vector<double> out;
  for (const auto& [pair, edge] : edges) {
    if (const double value = of(edge); value > 0) out.push_back(value);
  }
  return out;
}

double rtt_of(const netdetect::Edge& edge) { return edge.rtt_us; }
double rtt_min_of(const netdetect::Edge& edge) { return edge.rtt_min_us; }
double rate_of(const netdetect::Edge& edge) { return edge.bits_per_second; }

void set_far(Usual& usual, double rtt_us, double rtt_min_us) {
  usual.rtt_us = rtt_us;
  usual.far_above_us = rtt_us > 0 ? std::max(kFarFactor * rtt_us, rtt_us + kFarAtLeastUs) : 0;
  usual.far_min_above_us = rtt_min_us > 0 ? std::max(kFarMinFactor * rtt_min_us, rtt_min_us + kFarMinAtLeastUs) : 0;
}

// Formula and source: too_fast_for_its_loss().
double segment_bits(const netdetect::Edge& edge) {
  return 8.0 * (edge.path_mtu > kHeaders ? edge.path_mtu - kHeaders : kUsualSegment);
}

double loss_above(const netdetect::Edges& edges, double share, double factor) {
  std::vector<double> losses;
  for (const auto& [pair, edge] : edges) {
    if (edge.n_segments > 0) losses.push_back(edge.loss());
  }
  return std::max(kLossAtLeast, factor * netdetect::quantile(std::move(losses), share));
}

Attribution attribution(const netdetect::Edges& edges, const Usual& usual,
                        bool (*is_bad)(const netdetect::Edge&, const Usual&), bool (*counts)(const netdetect::Edge&),
                        bool (*is_doubtful)(const netdetect::Edge&, const Usual&)) {
  std::set<netdetect::HostPair> measured, bad, doubtful;
  for (const auto& [pair, edge] : edges) {
    if (!counts(edge)) continue;
    measured.insert(pair);
    if (is_bad(edge, usual)) {
      bad.insert(pair);
    } else if (is_doubtful(edge, usual)) {
      doubtful.insert(pair);
    }
  }
  return attribute_links(measured, bad, doubtful);
}

bool never(const netdetect::Edge&, const Usual&) { return false; }

bool sends_again(const netdetect::Edge& edge, const Usual& usual) {
  return edge.n_retransmits >= kMinRetransmits && edge.loss() > usual.loss_above;
}

// A sender that was kept from running retransmits segments that were not lost. By Mathis, Semke, Mahdavi, Ott: The
// Macroscopic Behavior of the TCP Congestion Avoidance Algorithm (CCR 27(3), 1997), the rate of a connection with
// that loss is at most (MSS / RTT) sqrt(3/2 / loss); a faster one lost less.
bool too_fast_for_its_loss(const netdetect::Edge& edge) {
  if (edge.paced || edge.rtt_min_us <= 0 || edge.loss() <= 0) return false;
  const double limit = segment_bits(edge) / (edge.rtt_min_us * 1e-6) * std::sqrt(1.5 / edge.loss());
  return edge.one_stream > kTimesMathis * limit;
}

}  // namespace

Usual usual_of(const netdetect::Edges& edges, bool one_machine) {
  Usual out;
  out.bits_per_second = netdetect::usual_rate(edges);
  const double most = one_machine ? kSlowAtLeast : kSlowAtMost;
  const double share = std::clamp(kBelowSound * netdetect::evenness(edges, out.bits_per_second), kSlowAtLeast, most);
  // With two hosts there is one pair: nothing to compare with.
  out.slow_below = edges.size() > 2 ? share * out.bits_per_second : 0;
  // The lower fifth of losses and of round trips, because with few hosts a bad one affects more than half of the
  // links.
  out.loss_above = edges.size() > 2 ? loss_above(edges, 0.2, kAnomalyFactor) : kLossAtLeast;
  set_far(out, netdetect::quantile(values(edges, rtt_of), 0.2), netdetect::quantile(values(edges, rtt_min_of), 0.2));
  if (edges.size() <= 2) out.far_above_us = 0;
  return out;
}

Usual usual_of_controls(const netdetect::Edges& controls, const Usual& first) {
  Usual out;
  const std::vector<double> rates = values(controls, rate_of);
  out.bits_per_second = netdetect::median(rates);
  if (!rates.empty() && first.bits_per_second > 0) {
    const double lowest = *std::min_element(rates.begin(), rates.end());
    const double share = std::min(first.slow_below / first.bits_per_second, kBelowSound * lowest / out.bits_per_second);
    out.slow_below = std::max(share, kSlowAtLeast) * out.bits_per_second;
  }
  out.loss_above = controls.empty() ? first.loss_above : loss_above(controls, 0.5, kLossFactor);
  set_far(out, netdetect::median(values(controls, rtt_of)), netdetect::median(values(controls, rtt_min_of)));
  return out;
}

bool slow(const netdetect::Edge& edge, const Usual& usual) {
  return edge.bits_per_second > 0 && edge.bits_per_second < usual.slow_below;
}

bool lossy(const netdetect::Edge& edge, const Usual& usual) {
  return sends_again(edge, usual) && !too_fast_for_its_loss(edge);
}

bool far(const netdetect::Edge& edge, const Usual& usual) {
  return usual.far_above_us > 0 && edge.rtt_us > usual.far_above_us && edge.rtt_min_us > usual.far_min_above_us;
}

std::set<int> Anomalies::hosts() const {
  std::set<int> out;
  for (const Attribution* attribution : {&slow, &lossy, &far}) out.merge(attribution->hosts());
  return out;
}

std::set<int> Anomalies::doubted() const {
  std::set<int> out = hosts();
  out.insert(left_out.begin(), left_out.end());
  return out;
}

std::set<netdetect::HostPair> Anomalies::pairs() const {
  std::set<netdetect::HostPair> out;
  for (const Attribution* attribution : {&slow, &lossy, &far}) {
    for (const auto& [from, to] : attribution->pairs) out.insert(std::minmax(from, to));
  }
  return out;
}

Anomalies find_anomalies(const netdetect::Edges& edges, const Usual& usual) {
  Anomalies out;
  out.slow = attribution(
      edges, usual, slow, [](const netdetect::Edge& edge) { return edge.bits_per_second > 0; }, never);
  // A direction that is too fast for its loss may still have lost what it retransmitted: if frames on the path are
  // longer than a segment (veth, segmentation offload up to the other host), the formula's limit is too low.
  out.lossy = attribution(
      edges, usual, lossy, [](const netdetect::Edge& edge) { return edge.n_segments > 0; }, sends_again);
  out.far = attribution(
      edges, usual, far, [](const netdetect::Edge& edge) { return edge.rtt_us > 0; }, never);
  out.left_out = netdetect::left_out_hosts(edges);
  return out;
}

}  // namespace drun::check
