// The memory layout of a selection, and the sample that narrows its search. gpu_kernels_test.cpp tests the kernels.
#include "runtime/src/gpu/selection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "runtime/src/dtype.h"

namespace drun::runtime::gpu {
namespace {

const void* address(std::uintptr_t value) { return reinterpret_cast<const void*>(value); }

TEST(Selection, PartsLieOneBehindTheOtherWithinItsBytes) {
  const std::uintptr_t begin = 1u << 20;
  for (const drun_dtype dtype : {DRUN_FLOAT32, DRUN_FLOAT64}) {
    for (const std::size_t count : {1u, 7u, 8u, 4096u, 4097u, 100'000u, 25'000'000u}) {
      const auto a = about_selection(address(64), count, dtype, address(begin));
      EXPECT_EQ(a.selection, begin);
      EXPECT_EQ(a.n_tiles, (count + kTile - 1) / kTile);
      EXPECT_EQ(a.groups, a.selection + sizeof(Selection));
      EXPECT_EQ(a.n_groups, (a.n_tiles + kTilesOfGroup - 1) / kTilesOfGroup);
      EXPECT_EQ(a.tiles, a.groups + a.n_groups * sizeof(TileGroup));
      EXPECT_EQ(a.list, a.tiles + a.n_tiles * sizeof(Tile));
      EXPECT_EQ(a.list % alignof(double), 0u);
      EXPECT_EQ(a.places, a.list + a.max_listed * size_of(dtype));
      EXPECT_EQ(a.places % alignof(std::uint16_t), 0u);
      EXPECT_LE(a.places + a.max_listed * sizeof(std::uint16_t), begin + selection_bytes(count)) << count;
    }
  }
}

TEST(Selection, ListHasRoomForAnEighthOfFloatsAndLessOfDoubles) {
  const std::size_t count = 8'000'000;
  EXPECT_GE(about_selection(nullptr, count, DRUN_FLOAT32, nullptr).max_listed, count / 8);
  const auto doubles = about_selection(nullptr, count, DRUN_FLOAT64, nullptr).max_listed;
  EXPECT_GE(doubles, count * 75 / 1000);
  EXPECT_LT(doubles, count / 8);
}

SelectArguments sample_of(std::uint64_t count, std::uint64_t k) {
  SelectArguments a{};
  a.count = count;
  a.k = k;
  plan_sample(a);
  return a;
}

TEST(Selection, SampleOfFewValuesIsAllOfThem) {
  for (const std::uint64_t count : {1u, 1000u, 65'536u}) {
    const auto a = sample_of(count, count / 2 + 1);
    EXPECT_EQ(a.n_sampled, count);
    EXPECT_EQ(a.sample_rank, count / 2 + 1);
  }
}

TEST(Selection, SampleIsA64thInWholeGroupsButNotSmall) {
  EXPECT_EQ(sample_of(65'537, 1).n_sampled, 65'536u);
  EXPECT_EQ(sample_of(64u * 65'536, 1).n_sampled, 65'536u);
  const auto a = sample_of(25'000'000, 1);
  EXPECT_EQ(a.n_sampled % kSampleGroup, 0u);
  EXPECT_LE(a.n_sampled, 25'000'000u / 64);
  EXPECT_GT(a.n_sampled, 25'000'000u / 64 - kSampleGroup);
}

// With groups whose values are all alike, the number of sampled values in the top K has this deviation.
TEST(Selection, SampleRankHasAMarginOfFourDeviations) {
  const auto a = sample_of(25'000'000, 250'000);
  const double expected = 250'000.0 * static_cast<double>(a.n_sampled) / 25'000'000.0,
               deviation = std::sqrt(expected * static_cast<double>(kSampleGroup));
  EXPECT_GE(static_cast<double>(a.sample_rank), expected + 4 * deviation);
  EXPECT_LE(static_cast<double>(a.sample_rank), expected + 4 * deviation + 1);
}

}  // namespace
}  // namespace drun::runtime::gpu
