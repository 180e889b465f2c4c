#include "control/clock_alignment.h"

#include <cstdlib>

namespace drun::control {

namespace {
constexpr std::int64_t kDriftPpm = 100;  // two unsteered quartz oscillators
}

std::int64_t ClockAlignment::error_at(const Sample& sample, std::int64_t host_ns) {
  return sample.half_trip_ns + std::abs(host_ns - sample.host_ns) / 1'000'000 * kDriftPpm;
}

void ClockAlignment::add(std::int64_t sent_ns, std::int64_t received_ns, std::int64_t host_ns) {
  if (received_ns < sent_ns) return;
  Sample sample;
  sample.half_trip_ns = (received_ns - sent_ns + 1) / 2;
  sample.offset_ns = host_ns - (sent_ns + (received_ns - sent_ns) / 2);
  sample.host_ns = host_ns;
  if (!best_ || sample.half_trip_ns <= error_at(*best_, host_ns)) best_ = sample;
}

std::optional<Moment> ClockAlignment::ours(std::int64_t host_ns) const {
  if (!best_) return std::nullopt;
  const std::int64_t middle = host_ns - best_->offset_ns;
  const std::int64_t error = error_at(*best_, host_ns);
  return Moment{middle - error, middle + error};
}

}  // namespace drun::control
