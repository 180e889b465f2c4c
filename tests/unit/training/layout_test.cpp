// Buckets and parts contain everything once, in order, within the limit.
#include "drun/training/layout.hpp"

#include <gtest/gtest.h>

#include <random>

namespace drun::training {
namespace {

char memory[1 << 20];

TensorList tensors(const std::vector<std::pair<std::size_t, drun_dtype>>& counts) {
  TensorList list;
  for (const auto& [count, dtype] : counts) list.add("t" + std::to_string(list.size()), memory, count, dtype);
  return list;
}

std::vector<std::string> names(const std::vector<Bucket>& buckets) {
  std::vector<std::string> result;
  for (const auto& bucket : buckets) result.push_back(bucket.name + ":" + std::to_string(bucket.count));
  return result;
}

using Names = std::vector<std::string>;

TEST(Layout, FillsBucketsInOrder) {
  const auto list = tensors({{3, DRUN_FLOAT32}, {4, DRUN_FLOAT32}, {2, DRUN_FLOAT32}, {7, DRUN_FLOAT32}});
  EXPECT_EQ(names(lay_out(list, whole(list), 48)), (Names{"t0..t1:12", "t2:2", "t3:7"}));
  EXPECT_EQ(names(lay_out(list, whole(list), 1000)), (Names{"t0..t3:31"}));
}

TEST(Layout, PiecesBeginAtAlignedPlaces) {
  for (const auto& [dtype, places] : {std::pair{DRUN_FLOAT64, std::vector<std::size_t>{0, 8, 24}},
                                      std::pair{DRUN_BFLOAT16, std::vector<std::size_t>{0, 8, 24}},
                                      std::pair{DRUN_UINT8, std::vector<std::size_t>{0, 16, 32}}}) {
    const auto list = tensors({{3, dtype}, {0, dtype}, {16, dtype}, {1, dtype}});
    const auto buckets = lay_out(list, whole(list), 1000);
    ASSERT_EQ(buckets.size(), 1u);
    std::vector<std::size_t> seen;
    for (const auto& piece : buckets.front().pieces) seen.push_back(piece.place);
    EXPECT_EQ(seen, places);
    EXPECT_EQ(buckets.front().count, places.back() + 1);
  }
}

TEST(Layout, SplitsOnlyWhatIsLargerThanABucket) {
  const auto list = tensors({{1, DRUN_FLOAT64}, {9, DRUN_FLOAT64}, {3, DRUN_FLOAT64}, {4, DRUN_FLOAT64}});
  EXPECT_EQ(names(lay_out(list, whole(list), 32)), (Names{"t0:1", "t1:4", "t1:4", "t1:1", "t2:3", "t3:4"}));
  EXPECT_EQ(lay_out(list, whole(list), 0).size(), 17u) << "an element at least";
}

TEST(Layout, SeparatesTypesAndLeavesOutWhatIsEmpty) {
  const auto list = tensors({{2, DRUN_FLOAT32}, {0, DRUN_FLOAT64}, {2, DRUN_FLOAT32}, {2, DRUN_FLOAT16}});
  EXPECT_EQ(names(lay_out(list, whole(list), 1000)), (Names{"t0..t2:10", "t3:2"}));
  EXPECT_TRUE(lay_out(tensors({}), {}, 1000).empty());
  EXPECT_TRUE(lay_out(tensors({{0, DRUN_FLOAT32}}), {{0, 0, 0}}, 1000).empty());
}

TEST(Layout, BucketsAndPartsCoverEverythingOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::size_t, drun_dtype>> counts;
    std::size_t total = 0;
    for (auto n = random() % 8; n > 0; --n) {
      counts.push_back({random() % 50, random() % 4 == 0 ? DRUN_FLOAT32 : DRUN_FLOAT64});
      total += counts.back().first;
    }
    const auto list = tensors(counts);
    const std::size_t n_parts = 1 + random() % 10, limit = 8 + random() % 300;
    std::vector<std::vector<int>> seen;
    for (const auto& count : counts) seen.emplace_back(count.first);
    for (std::size_t number = 0; number < n_parts; ++number) {
      const auto pieces = part(list, number, n_parts);
      std::size_t n_elements = 0;
      for (const auto& piece : pieces) n_elements += piece.count;
      EXPECT_GE(n_elements, total / n_parts);
      EXPECT_LE(n_elements, total / n_parts + 1);
      for (const auto& bucket : lay_out(list, pieces, limit)) {
        std::size_t count = 0;
        for (const auto& piece : bucket.pieces) {
          EXPECT_GE(piece.place, count);
          EXPECT_LT(piece.place - count, alignment_of(bucket.dtype));
          count = piece.place + piece.count;
          EXPECT_EQ(list[piece.tensor].dtype, bucket.dtype);
          for (std::size_t i = 0; i < piece.count; ++i) ++seen.at(piece.tensor).at(piece.offset + i);
        }
        EXPECT_EQ(count, bucket.count);
        EXPECT_GT(count, 0u);
        EXPECT_LE(count * size_of(bucket.dtype), limit);
      }
    }
    for (const auto& tensor : seen) {
      for (const int times : tensor) EXPECT_EQ(times, 1);
    }
  }
}

TEST(TensorList, RefusesWhatIsWrong) {
  TensorList list;
  list.add("a", memory, 3, DRUN_FLOAT32);
  list.add("none", nullptr, 0, DRUN_FLOAT32);
  const auto text_of = [&list](const char* name, void* data, std::size_t count, int dtype) -> std::string {
    try {
      list.add(name, data, count, static_cast<drun_dtype>(dtype));
    } catch (const Error& e) {
      EXPECT_EQ(e.code, DRUN_ERROR_ARGUMENT);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(text_of("a", memory, 1, DRUN_FLOAT32), "tensor 'a': the name was registered before");
  EXPECT_EQ(text_of("b", nullptr, 1, DRUN_FLOAT32), "tensor 'b': a null pointer");
  EXPECT_EQ(text_of("b", memory, 1, 10), "tensor 'b': there is no element type 10");
  EXPECT_EQ(text_of("b", memory, 1, -1), "tensor 'b': there is no element type -1");
  EXPECT_EQ(text_of("b", memory, SIZE_MAX / 4, DRUN_FLOAT32),
            "tensor 'b': a count of " + std::to_string(SIZE_MAX / 4) + " is too large");
  EXPECT_EQ(list.size(), 2u);
}

}  // namespace
}  // namespace drun::training
