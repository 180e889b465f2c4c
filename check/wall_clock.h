// Compares a host's wall clock with drun's, by the control channel's estimate of the monotonic clocks. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "control/clock_alignment.h"
#include "control/host_facts.h"

namespace drun::check {

// The host's wall clock minus ours, in ms, accurate to half a round trip. The two times of now are ours, read at the
// same moment. nullopt before the first round trip.
inline std::optional<std::int64_t> wall_clock_offset_ms(const control::ClockAlignment& clock,
                                                        const control::HostFacts& facts, std::int64_t monotonic_now_ns,
                                                        std::int64_t realtime_now_ns) {
  const auto then = clock.ours(facts.monotonic_ns);
  if (!then || facts.realtime_ns == 0) return std::nullopt;
  const std::int64_t ours_then = realtime_now_ns - (monotonic_now_ns - then->middle_ns());
  return (facts.realtime_ns - ours_then) / 1'000'000;
}

}  // namespace drun::check
