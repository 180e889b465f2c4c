// The clock of deadlines, and the one of timestamps. C++17, no dependencies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace drun {

// A steady clock that excludes the time in which this process was stopped on purpose (Ctrl-Z until `fg`), so that no
// deadline passes meanwhile. Any thread may read it.
class Clock {
 public:
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept {
    return time_point(std::chrono::steady_clock::now().time_since_epoch() - duration(stopped_.load()));
  }
  // Called by the code that stopped the process, once it runs again.
  static void was_stopped_for(duration time) noexcept { stopped_ += time.count(); }

 private:
  static inline std::atomic<rep> stopped_{0};
};

using Deadline = Clock::time_point;

// 0 if the deadline has passed.
inline std::chrono::milliseconds left_until(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return left.count() > 0 ? left : std::chrono::milliseconds(0);
}

// CLOCK_MONOTONIC in nanoseconds: the timestamps that hosts exchange, by which events on different hosts are compared.
inline std::int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace drun
