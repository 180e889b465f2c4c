// Notices that this process did not run for a while (Ctrl-Z, SIGSTOP, a frozen cgroup): such time is nobody else's
// silence, and no deadline counts it. C++17, no dependencies.
#pragma once

#include <chrono>

namespace drun {

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;
  // The owner promises to look() at least every `every` while it runs.
  explicit StallWatch(Duration every) : every_(every), last_(Clock::now()) {}
  // For how long we were stopped since the last look; 0 if the machine was merely busy.
  Duration look(Clock::time_point now = Clock::now()) {
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
