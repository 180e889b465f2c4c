// Percentiles of call times. Pure.
#pragma once

#include <vector>

namespace drun::bench {

struct Percentiles {
  double p50 = 0, p99 = 0;
};
// p50 is the upper median. p99 is the nearest rank: with fewer than 100 times, the largest. `times` must not be
// empty.
Percentiles percentiles(std::vector<double> times);

}  // namespace drun::bench
