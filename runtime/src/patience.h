// What is left of a call's time. Time for which this process was stopped does not count.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/stall_watch.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

class Patience {
 public:
  // No wait may be longer than this: so a stop of this process (Ctrl-Z) is noticed, and all but this much of its time
  // does not count.
  static constexpr std::chrono::milliseconds kLook{200};

  // To be asked before every wait. 0 or less: the deadline has passed.
  std::chrono::milliseconds left(const Operation& operation) {
    const auto stopped = stops_.look();
    if (std::exchange(stopped_in_, operation.deadline()) == operation.deadline()) {
      stopped_ += stopped;
    } else {  // of a stop that was noticed only now, what came after the call
      const auto since_call = Clock::now() - operation.clock.began();
      stopped_ = std::max(StallWatch::Duration::zero(), std::min<StallWatch::Duration>(stopped, since_call));
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(operation.deadline() + stopped_ - Clock::now());
  }

 private:
  StallWatch stops_{kLook};
  Clock::duration stopped_{};  // during the call that has the deadline `stopped_in_`; extends it
  Clock::time_point stopped_in_{};
};

}  // namespace drun::runtime
