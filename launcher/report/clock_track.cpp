#include "launcher/report/clock_track.h"

#include <algorithm>

namespace drun::launcher {

namespace {
// A later alignment within this time replaces the previous one: two with errors in different directions would bend the
// time between them.
constexpr std::int64_t kApartNs = 1'000'000'000;
}  // namespace

void ClockTrack::add(const control::ClockAlignment& alignment) {
  const auto& best = alignment.best();
  if (!best || (!points_.empty() && best->host_ns <= points_.back().host_ns)) return;
  if (!points_.empty() && best->host_ns - points_.back().host_ns < kApartNs) {
    points_.back() = *best;
  } else {
    points_.push_back(*best);
  }
}

std::int64_t ClockTrack::ours(std::int64_t host_ns) const {
  if (points_.empty()) return host_ns;
  const auto after = std::upper_bound(points_.begin(), points_.end(), host_ns,
                                      [](std::int64_t t, const auto& point) { return t < point.host_ns; });
  if (after == points_.begin()) return host_ns - after->offset_ns;
  const auto& a = *(after - 1);
  if (after == points_.end()) return host_ns - a.offset_ns;
  const double part = static_cast<double>(host_ns - a.host_ns) / static_cast<double>(after->host_ns - a.host_ns);
  const auto change = static_cast<double>(after->offset_ns - a.offset_ns);
  return host_ns - a.offset_ns - static_cast<std::int64_t>(part * change);
}

std::int64_t ClockTrack::uncertainty_ns() const {
  std::int64_t most = 0;
  for (const auto& point : points_) most = std::max(most, point.half_trip_ns);
  return most;
}

}  // namespace drun::launcher
