// When the process group of one worker gets TERM and KILL. Pure: the time is passed in.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace drun::agent {

class EndPlan {
 public:
  enum class Step { kNone, kTerm, kKill };

  // TERM at `term_at`, KILL after `grace`. A later order can only make the times earlier.
  void order(Deadline term_at, std::chrono::milliseconds grace) {
    term_at_ = std::min(term_at_, term_at);
    kill_at_ = std::min(kill_at_, term_at + grace);
  }
  // The step that is due and not taken yet. TERM is taken once, KILL again at every call.
  Step take(Deadline now) {
    if (now >= kill_at_) return Step::kKill;
    if (is_termed_ || now < term_at_) return Step::kNone;
    is_termed_ = true;
    return Step::kTerm;
  }
  // The time of the next step; Deadline::max() = nothing is ordered.
  Deadline next() const { return is_termed_ ? kill_at_ : std::min(term_at_, kill_at_); }
  Deadline kill_at() const { return kill_at_; }

 private:
  Deadline term_at_ = Deadline::max(), kill_at_ = Deadline::max();
  bool is_termed_ = false;
};

}  // namespace drun::agent
