#include "bench/buffer_limit.h"

#include <gtest/gtest.h>

namespace drun::bench {
namespace {

using Counts = std::vector<int>;

TEST(BenchBufferLimit, BuffersOfAllRanksTakeFourFifthsOfTheHost) {
  RankMemory memory;
  memory.host_bytes = 1000;
  EXPECT_EQ(max_buffer_bytes(memory), 400u);
  memory.n_on_host = 4;
  EXPECT_EQ(max_buffer_bytes(memory), 100u);
}

TEST(BenchBufferLimit, RanksWithAGpuOfTheirOwnShareOnlyTheHost) {
  RankMemory memory;
  memory.host_bytes = 1'000'000;
  memory.n_on_host = 8;
  memory.gpu_bytes = 1000;
  memory.n_on_gpu = 1;
  EXPECT_EQ(max_buffer_bytes(memory), 400u);
  memory.host_bytes = 1000;
  EXPECT_EQ(max_buffer_bytes(memory), 50u);
}

TEST(BenchBufferLimit, RanksThatShareAGpuAreStagedThroughTheHost) {
  RankMemory memory;
  memory.host_bytes = 1'000'000;
  memory.n_on_host = 2;
  memory.gpu_bytes = 1000;
  memory.n_on_gpu = 2;
  EXPECT_EQ(max_buffer_bytes(memory), 200u);
  memory.host_bytes = 1000;
  EXPECT_EQ(max_buffer_bytes(memory), 100u);
}

TEST(BenchBufferLimit, AGpuIsSharedByRanksOfOneHostOnly) {
  EXPECT_EQ(ranks_on_gpu({0, 0, 1, 1}, {"a", "b", "c", "d"}), (Counts{1, 1, 1, 1}));
  EXPECT_EQ(ranks_on_gpu({0, 0, 0, 1}, {"a", "b", "a", "a"}), (Counts{2, 1, 2, 1}));
}

}  // namespace
}  // namespace drun::bench
