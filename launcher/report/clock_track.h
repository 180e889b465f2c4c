// Maps one host's clock to drun's over a whole job. Interpolates linearly between the alignments that were the best in
// their time, so that events keep their order. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "control/clock_alignment.h"

namespace drun::launcher {

class ClockTrack {
 public:
  // Adds the alignment's best sample so far. May be called at any rate.
  void add(const control::ClockAlignment& alignment);
  bool empty() const { return points_.empty(); }
  // The time on drun's clock; unchanged if there is no alignment.
  std::int64_t ours(std::int64_t host_ns) const;
  // Maximum error of ours() near the alignments. 0: nothing is known.
  std::int64_t uncertainty_ns() const;

 private:
  std::vector<control::ClockAlignment::Sample> points_;  // by the host's time
};

}  // namespace drun::launcher
