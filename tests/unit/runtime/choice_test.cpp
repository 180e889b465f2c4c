#include "runtime/src/algorithm/choice.h"

#include <gtest/gtest.h>

namespace drun::runtime {
namespace {

using A = AllreduceAlgorithm;

TEST(Choice, IsByBytesAndRanks) {
  const struct {
    std::size_t n_bytes, count;
    int size;
    A expected;
  } rows[] = {
      {0, 0, 2, A::kDoubling},
      {128u << 10, 32768, 2, A::kDoubling},
      {(128u << 10) + 4, 32769, 2, A::kRing},
      {16u << 10, 4096, 3, A::kDoubling},
      {(16u << 10) + 4, 4097, 3, A::kHalving},
      {(64u << 10) - 4, 16383, 4, A::kHalving},
      {64u << 10, 16384, 4, A::kRing},
      {(128u << 10) - 4, 32767, 8, A::kHalving},
      {128u << 10, 32768, 8, A::kRing},
      {1u << 20, 1u << 18, 64, A::kRing},
      {(1u << 20) - 4, (1u << 18) - 1, 64, A::kHalving},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(choose_allreduce(row.n_bytes, row.count, row.size), row.expected) << row.n_bytes << " " << row.size;
  }
}

TEST(Choice, HasAtLeastAnElementForEachRankOfARing) { EXPECT_EQ(choose_allreduce(1u << 20, 7, 8), A::kDoubling); }

TEST(Choice, KnowsNames) {
  EXPECT_EQ(allreduce_algorithm_named("doubling"), A::kDoubling);
  EXPECT_EQ(allreduce_algorithm_named("halving"), A::kHalving);
  EXPECT_EQ(allreduce_algorithm_named("ring"), A::kRing);
  EXPECT_EQ(allreduce_algorithm_named("Ring"), std::nullopt);
}

}  // namespace
}  // namespace drun::runtime
