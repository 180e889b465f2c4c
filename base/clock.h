// The clock that deadlines are told by, and the one that timestamps are taken from. C++17, no dependencies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace drun {

// Steady, and it stands still while this process is stopped on purpose (Ctrl-Z until `fg`): no deadline passes
// meanwhile, whoever set it. May be read by any thread.
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
  // To be called by whoever stopped the process, once it runs again.
  static void was_stopped_for(duration time) noexcept { stopped_ += time.count(); }

 private:
  static inline std::atomic<rep> stopped_{0};
};

using Deadline = Clock::time_point;

// CLOCK_MONOTONIC, in nanoseconds: what hosts tell each other, and what moments on different hosts are compared by.
inline std::int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace drun
