#include "control/clock_alignment.h"

#include <algorithm>
#include <cstdlib>

namespace drun::control {

namespace {
constexpr std::int64_t kDriftPpm = 100;  // two unsteered quartz oscillators
// Later than any clock shows. A host may send any time; within this limit no sum or difference overflows.
constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

bool is_time(std::int64_t host_ns) { return host_ns >= 0 && host_ns <= kLatestNs; }
}  // namespace

std::int64_t ClockAlignment::error_at(const Sample& sample, std::int64_t host_ns) {
  return sample.half_trip_ns + std::abs(host_ns - sample.host_ns) / 1'000'000 * kDriftPpm;
}

void ClockAlignment::add(std::int64_t sent_ns, std::int64_t received_ns, std::int64_t host_ns) {
  if (sent_ns < 0 || received_ns < sent_ns || !is_time(host_ns)) return;
  Sample sample;
  sample.half_trip_ns = (received_ns - sent_ns + 1) / 2;
  sample.offset_ns = host_ns - (sent_ns + (received_ns - sent_ns) / 2);
  sample.host_ns = host_ns;
  if (!best_ || sample.half_trip_ns <= error_at(*best_, host_ns)) best_ = sample;
}

std::optional<Moment> ClockAlignment::ours(std::int64_t host_ns) const {
  if (!best_ || !is_time(host_ns)) return std::nullopt;
  const std::int64_t middle = host_ns - best_->offset_ns;
  const std::int64_t error = error_at(*best_, host_ns);
  return Moment{middle - error, middle + error};
}

}  // namespace drun::control
