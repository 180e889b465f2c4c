#include "bench/bound.h"

#include <gtest/gtest.h>

namespace drun::bench {
namespace {

// The total traffic.
double bytes(Kind kind, double n_bytes, int n_ranks) {
  const MemoryTraffic traffic = memory_traffic(kind, n_bytes, n_ranks);
  return traffic.buffers + traffic.between;
}

TEST(BenchBound, MemoryTrafficIsCopiesInAndOutAndTheReduction) {
  // Four ranks, 100 bytes each: in 200, reduced 125, out 200.
  EXPECT_DOUBLE_EQ(bytes(Kind::kAllReduce, 100, 4), 4 * 525);
  EXPECT_DOUBLE_EQ(bytes(Kind::kReduceScatter, 100, 4), 4 * 325);
  EXPECT_DOUBLE_EQ(bytes(Kind::kReduce, 100, 4), 4 * 325 + 200);
  EXPECT_DOUBLE_EQ(bytes(Kind::kBroadcast, 100, 4), 800);
  EXPECT_DOUBLE_EQ(bytes(Kind::kAlltoall, 100, 4), 1200);
  EXPECT_DOUBLE_EQ(bytes(Kind::kGather, 100, 4), 300);
  EXPECT_EQ(bytes(Kind::kBarrier, 0, 4), 0);
  EXPECT_EQ(bytes(Kind::kAllReduce, 100, 1), 0);  // nothing has to be moved
}

TEST(BenchBound, WhatRanksShareIsTimedByItself) {
  // In an allreduce each rank reads 100 bytes from its buffer and writes 100; the rest is traffic in shared memory.
  EXPECT_DOUBLE_EQ(memory_traffic(Kind::kAllReduce, 100, 4).buffers, 800);
  EXPECT_DOUBLE_EQ(memory_traffic(Kind::kAllReduce, 100, 4).between, 1300);
  EXPECT_DOUBLE_EQ(memory_traffic(Kind::kAllGather, 100, 4).buffers, 400);
  Bound bound;
  bound.kind = BoundKind::kMemory;
  bound.bytes_per_second = 800;
  bound.between_bytes_per_second = 2600;  // it fits in a cache
  EXPECT_DOUBLE_EQ(percent_of_bound(bound, Kind::kAllReduce, 100, {4}, 0, 3), 50);
}

TEST(BenchBound, NicTrafficIsWhatMustLeaveAHost) {
  const std::vector<int> even = {2, 2}, uneven = {3, 1};
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kAllReduce, 100, even, 0), 100);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kAllReduce, 100, {1, 1, 1, 1}, 0), 150);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kAllGather, 100, even, 0), 50);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kAllGather, 100, uneven, 0), 75);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kAlltoall, 100, even, 0), 100);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kGather, 100, uneven, 0), 25);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kScatter, 100, uneven, 1), 75);
  EXPECT_DOUBLE_EQ(nic_traffic(Kind::kSendRecv, 100, even, 0), 100);
  EXPECT_EQ(nic_traffic(Kind::kAllReduce, 100, {4}, 0), 0);
}

TEST(BenchBound, PercentIsTheBoundsTimeOverTheMeasuredOne) {
  Bound bound;
  bound.kind = BoundKind::kLineRate;
  bound.bytes_per_second = 1000;
  EXPECT_DOUBLE_EQ(percent_of_bound(bound, Kind::kAllReduce, 100, {2, 2}, 0, 0.2), 50);
  bound.kind = BoundKind::kMemory;
  EXPECT_DOUBLE_EQ(percent_of_bound(bound, Kind::kBroadcast, 100, {4}, 0, 1.6), 50);
}

TEST(BenchBound, UnknownIsNegative) {
  EXPECT_LT(percent_of_bound(Bound(), Kind::kAllReduce, 100, {2, 2}, 0, 1), 0);
  Bound bound;
  bound.kind = BoundKind::kLineRate;
  bound.bytes_per_second = 1000;
  EXPECT_LT(percent_of_bound(bound, Kind::kBarrier, 0, {2, 2}, 0, 1), 0);
  EXPECT_LT(percent_of_bound(bound, Kind::kAllReduce, 0, {2, 2}, 0, 1), 0);
  EXPECT_LT(percent_of_bound(bound, Kind::kAllReduce, 100, {2, 2}, 0, 0), 0);
}

}  // namespace
}  // namespace drun::bench
