// Times of many calls in a few numbers. Pure.
#pragma once

#include <vector>

namespace drun::bench {

struct Percentiles {
  double p50 = 0, p99 = 0;
};
// By the nearest rank: with fewer than 100 times the 99th percentile is the largest. Not of nothing.
Percentiles percentiles(std::vector<double> times);

}  // namespace drun::bench
