// The remaining time of a call. Time during which this process was stopped does not count.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/stall_watch.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

class CallDeadline {
 public:
  // Maximum length of one wait, so that a stop of this process (Ctrl-Z) is noticed and at most this much of it counts.
  static constexpr std::chrono::milliseconds kPollInterval{200};

  // Must be called before every wait. 0 or less if the deadline has passed.
  std::chrono::milliseconds left(const Operation& operation) {
    const auto stopped = stops_.poll();
    if (std::exchange(stopped_in_, operation.deadline()) == operation.deadline()) {
      stopped_ += stopped;
    } else {  // counts only the part of the stop that came after the start of the call
      const auto since_call = Clock::now() - operation.clock.began();
      stopped_ = std::max(StallWatch::Duration::zero(), std::min<StallWatch::Duration>(stopped, since_call));
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(operation.deadline() + stopped_ - Clock::now());
  }

 private:
  StallWatch stops_{kPollInterval};
  Clock::duration stopped_{};  // during the call with the deadline `stopped_in_`, which it extends
  Clock::time_point stopped_in_{};
};

}  // namespace drun::runtime
