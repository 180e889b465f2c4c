#include "bench/kind.h"

#include <gtest/gtest.h>

namespace drun::bench {
namespace {

TEST(BenchKind, NamesGoThereAndBack) {
  const auto names = kind_names();
  EXPECT_EQ(names.size(), 10u);
  for (const auto& name : names) {
    const auto kind = kind_of(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(info(*kind).name, name);
    EXPECT_EQ(info(*kind).kind, *kind);
  }
  EXPECT_EQ(kind_of("allreduce"), Kind::kAllReduce);
  EXPECT_EQ(kind_of("all-gather"), Kind::kAllGather);
  EXPECT_EQ(kind_of("send_recv"), Kind::kSendRecv);
  EXPECT_FALSE(kind_of("allredcue").has_value());
}

TEST(BenchKind, WholeBuffersAreSizeOverElement) {
  for (const Kind kind : {Kind::kAllReduce, Kind::kBroadcast, Kind::kReduce, Kind::kSendRecv}) {
    const Counts c = counts(kind, 1030, 4, 3);
    EXPECT_EQ(c.send, 257u);
    EXPECT_EQ(c.recv, 257u);
    EXPECT_EQ(c.call, 257u);
    EXPECT_EQ(c.send_offset + c.recv_offset, 0u);
  }
}

TEST(BenchKind, BlocksAreMultiplesOf16Bytes) {
  // 1000 / 4 = 250 elements, 83 for each of 3, of which 80 are 16-byte aligned.
  const Counts gather = counts(Kind::kAllGather, 1000, 4, 3);
  EXPECT_EQ(gather.send, 80u);
  EXPECT_EQ(gather.recv, 240u);
  EXPECT_EQ(gather.call, 80u);
  EXPECT_EQ(gather.send_offset, 80u);
  EXPECT_EQ(gather.recv_offset, 0u);
  const Counts scatter = counts(Kind::kReduceScatter, 1000, 4, 3);
  EXPECT_EQ(scatter.send, 240u);
  EXPECT_EQ(scatter.recv, 80u);
  EXPECT_EQ(scatter.recv_offset, 80u);
  const Counts all = counts(Kind::kAlltoall, 1000, 1, 3);
  EXPECT_EQ(all.call, 320u);
  EXPECT_EQ(all.send, 960u);
  EXPECT_EQ(counts(Kind::kGather, 8, 4, 4).recv, 0u);  // as in nccl-tests, which reports a row of 0 bytes
}

// The factors of nccl-tests' doc/PERFORMANCE.md and its programs.
TEST(BenchKind, BandwidthsHaveNcclTestsFactors) {
  constexpr int n = 4;
  constexpr double seconds = 0.5;
  struct Case {
    Kind kind;
    double factor;
  };
  for (const auto& [kind, factor] :
       {Case{Kind::kAllReduce, 1.5}, Case{Kind::kAllGather, 0.75}, Case{Kind::kBroadcast, 1}, Case{Kind::kReduce, 1},
        Case{Kind::kReduceScatter, 0.75}, Case{Kind::kAlltoall, 0.75}, Case{Kind::kGather, 0.75},
        Case{Kind::kScatter, 0.75}, Case{Kind::kSendRecv, 1}}) {
    const Counts c = counts(kind, 1 << 20, 4, n);
    const Bandwidth b = bandwidth(kind, c, 4, n, seconds);
    EXPECT_DOUBLE_EQ(b.algorithm, 2097152) << info(kind).name;
    EXPECT_DOUBLE_EQ(b.bus, 2097152 * factor) << info(kind).name;
  }
}

TEST(BenchKind, NothingMovedAndNoTimeAreNoBandwidth) {
  EXPECT_EQ(bandwidth(Kind::kBarrier, counts(Kind::kBarrier, 64, 1, 4), 1, 4, 1).bus, 0);
  EXPECT_EQ(bandwidth(Kind::kAllReduce, counts(Kind::kAllReduce, 64, 4, 4), 4, 4, 0).algorithm, 0);
  EXPECT_EQ(bandwidth(Kind::kAllReduce, counts(Kind::kAllReduce, 64, 4, 1), 4, 1, 1).bus, 0);
}

}  // namespace
}  // namespace drun::bench
