#include "bench/timing.h"

#include <algorithm>
#include <cstddef>

namespace drun::bench {

Percentiles percentiles(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 2], times[std::min(n - 1, (n * 99 + 99) / 100 - 1)]};
}

}  // namespace drun::bench
