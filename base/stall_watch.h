// Detects that this process did not run for a while (Ctrl-Z, SIGSTOP, a frozen cgroup), so that such time counts
// neither as silence of a peer nor toward a deadline. C++17, no dependencies.
#pragma once

#include <chrono>

namespace drun {

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;
  // The owner must call poll() at least once per `every` while it runs.
  explicit StallWatch(Duration every) : every_(every), last_(Clock::now()) {}
  // The time for which this process was stopped since the last call; 0 if the machine was merely busy.
  Duration poll(Clock::time_point now = Clock::now()) {
    const Duration gap = now - last_;
    last_ = now;
    return gap > every_ + kBusy ? gap - every_ : Duration::zero();
  }

 private:
  static constexpr std::chrono::milliseconds kBusy{2000};
  Duration every_;
  Clock::time_point last_;
};

}  // namespace drun
