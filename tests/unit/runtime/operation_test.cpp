#include "runtime/src/operation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/src/backend/tcp/links.h"

namespace drun::runtime {
namespace {

Operation sample() {
  Operation operation;
  operation.kind = OpKind::kAllreduce;
  operation.dtype = DRUN_FLOAT32;
  operation.op = DRUN_MAX;
  operation.seq = 17;
  operation.count = 12;
  return operation;
}

TEST(Operation, SurvivesItsHeader) {
  const auto bytes = encode_header(sample());
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  const auto decoded = decode_header(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(same_call(*decoded, sample()));
  EXPECT_EQ(describe(*decoded), "allreduce #17 of 12 f32 (max)");
}

TEST(Operation, RefusesWhatIsNoHeader) {
  EXPECT_FALSE(decode_header(std::string(kHeaderBytes, 'x')));
  EXPECT_FALSE(decode_header(encode_header(sample()).substr(1)));
  for (const std::size_t place : {4u, 5u, 6u, 7u}) {  // version, kind, type, reduction
    auto bytes = encode_header(sample());
    bytes[place] = 77;
    EXPECT_FALSE(decode_header(bytes)) << place;
  }
}

TEST(Operation, TellsEveryDifference) {
  const auto differs = [](auto change) {
    Operation other = sample();
    change(other);
    return !same_call(sample(), other);
  };
  EXPECT_TRUE(differs([](Operation& o) { o.kind = OpKind::kBarrier; }));
  EXPECT_TRUE(differs([](Operation& o) { o.dtype = DRUN_INT32; }));
  EXPECT_TRUE(differs([](Operation& o) { o.op = DRUN_SUM; }));
  EXPECT_TRUE(differs([](Operation& o) { o.root = 1; }));
  EXPECT_TRUE(differs([](Operation& o) { o.seq = 18; }));
  EXPECT_TRUE(differs([](Operation& o) { o.count = 13; }));
  EXPECT_TRUE(differs([](Operation& o) { o.counts = 1; }));
}

TEST(Neighbours, AreMutualAndFew) {
  for (int size = 1; size <= 70; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const auto mine = neighbours(rank, size);
      EXPECT_LE(mine.size(), 14u);
      for (const int peer : mine) {
        const auto theirs = neighbours(peer, size);
        EXPECT_NE(peer, rank);
        EXPECT_EQ(std::count(theirs.begin(), theirs.end(), rank), 1) << size << ": " << rank << " " << peer;
      }
    }
  }
  EXPECT_EQ(neighbours(0, 64).size(), 11u);
}

}  // namespace
}  // namespace drun::runtime
