#include "bench/timing.h"

#include <gtest/gtest.h>

namespace drun::bench {
namespace {

TEST(BenchTiming, PercentilesAreByTheNearestRank) {
  std::vector<double> times;
  for (int i = 1000; i >= 1; --i) times.push_back(i);
  EXPECT_EQ(percentiles(times).p50, 501);
  EXPECT_EQ(percentiles(times).p99, 990);
  EXPECT_EQ(percentiles({7}).p50, 7);
  EXPECT_EQ(percentiles({7}).p99, 7);
  EXPECT_EQ(percentiles({3, 1, 2}).p50, 2);
  EXPECT_EQ(percentiles({3, 1, 2}).p99, 3);
}

}  // namespace
}  // namespace drun::bench
