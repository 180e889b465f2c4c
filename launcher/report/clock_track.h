// One host's clock on drun's over a whole job: the alignments that were the best in their time, and between them a
// straight line, so that what was in order on the host stays so. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "control/clock_alignment.h"

namespace drun::launcher {

class ClockTrack {
 public:
  // What the alignment knows by now. May be called as often as one likes.
  void add(const control::ClockAlignment& alignment);
  bool empty() const { return points_.empty(); }
  // On drun's clock. Without any alignment: as it is.
  std::int64_t ours(std::int64_t host_ns) const;
  // How far off that may be at most, near the alignments. 0: nothing is known.
  std::int64_t uncertainty_ns() const;

 private:
  std::vector<control::ClockAlignment::Sample> points_;  // by the host's time
};

}  // namespace drun::launcher
