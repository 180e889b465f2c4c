#include "bench/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "bench/element.h"
#include "bench/settings.h"

namespace drun::bench {
namespace {

std::vector<drun_dtype> all_dtypes() { return *parse_dtypes("all"); }
std::vector<drun_op> ops_of(Kind kind) { return *parse_ops(info(kind).reduces ? "all" : "sum"); }

constexpr int kRanks = 3;
constexpr std::size_t kBytes = 40000;

Call call_of(Kind kind, drun_dtype dtype, drun_op op, int rank, int root = 1) {
  Call call;
  call.kind = kind;
  call.dtype = dtype;
  call.op = op;
  call.root = root;
  call.rank = rank;
  call.n_ranks = kRanks;
  call.counts = counts(kind, kBytes, element_size(dtype), kRanks);
  return call;
}

// Computes the result of the call from all ranks' inputs: slow, with separate code for each kind.
std::vector<char> carried_out(const Call& call) {
  const std::size_t size = element_size(call.dtype), n = call.counts.call;
  std::vector<std::vector<char>> given;
  for (int rank = 0; rank < kRanks; ++rank) {
    Call other = call;
    other.rank = rank;
    given.emplace_back(call.counts.send * size);
    Pattern(other, 5).fill(given.back().data());
  }
  std::vector<char> out(call.counts.recv * size, 0x55);
  const auto own = static_cast<std::size_t>(call.rank), root = static_cast<std::size_t>(call.root);
  const auto copy = [&](std::size_t block, std::size_t rank, std::size_t from_block) {
    std::memcpy(out.data() + block * n * size, given[rank].data() + from_block * n * size, n * size);
  };
  const auto reduce = [&](std::size_t first) {
    for (std::size_t i = 0; i < n; ++i) {
      double result = decode(given[0].data() + (first + i) * size, call.dtype);
      for (std::size_t rank = 1; rank < kRanks; ++rank) {
        const double value = decode(given[rank].data() + (first + i) * size, call.dtype);
        if (call.op == DRUN_PROD) result *= value;
        if (call.op == DRUN_SUM || call.op == DRUN_AVG) result += value;
        if (call.op == DRUN_MIN) result = value < result ? value : result;
        if (call.op == DRUN_MAX) result = value > result ? value : result;
      }
      if (call.op == DRUN_AVG) result /= kRanks;
      encode(result, call.dtype, out.data() + i * size);
    }
  };
  switch (call.kind) {
    case Kind::kAllReduce:
      reduce(0);
      break;
    case Kind::kReduce:
      if (own == root) reduce(0);
      break;
    case Kind::kReduceScatter:
      reduce(own * n);
      break;
    case Kind::kBroadcast:
      copy(0, root, 0);
      break;
    case Kind::kScatter:
      copy(0, root, own);
      break;
    case Kind::kSendRecv:
      copy(0, (own + kRanks - 1) % kRanks, 0);
      break;
    case Kind::kGather:
    case Kind::kAllGather:
    case Kind::kAlltoall:
      for (std::size_t rank = 0; rank < kRanks; ++rank) copy(rank, rank, call.kind == Kind::kAlltoall ? own : 0);
      break;
    case Kind::kBarrier:
      break;
  }
  return out;
}

TEST(BenchPattern, RightResultsAreRight) {
  for (const auto& name : kind_names()) {
    const Kind kind = *kind_of(name);
    for (const auto dtype : all_dtypes()) {
      for (const auto op : ops_of(kind)) {
        for (int rank = 0; rank < kRanks; ++rank) {
          const Call call = call_of(kind, dtype, op, rank);
          EXPECT_EQ(Pattern(call, 5).count_wrong(carried_out(call).data()), 0u)
              << name << " " << dtype_name(dtype) << " " << op_name(op) << " on " << rank;
        }
      }
    }
  }
}

TEST(BenchPattern, EveryCorruptedElementIsCounted) {
  for (const auto& name : kind_names()) {
    const Kind kind = *kind_of(name);
    if (kind == Kind::kBarrier) continue;
    for (const auto dtype : all_dtypes()) {
      for (const auto op : ops_of(kind)) {
        const Call call = call_of(kind, dtype, op, 1);  // the root, which always receives data
        const std::size_t size = element_size(dtype);
        auto data = carried_out(call);
        const std::size_t n = data.size() / size;
        for (const std::size_t i : {std::size_t{0}, n / 2, n - 1}) {
          const double value = decode(data.data() + i * size, dtype);
          encode(value < 20 ? value + 1 : value - 1, dtype, data.data() + i * size);
        }
        EXPECT_EQ(Pattern(call, 5).count_wrong(data.data()), 3u)
            << name << " " << dtype_name(dtype) << " " << op_name(op);
      }
    }
  }
}

TEST(BenchPattern, WhatIsNotThereIsWrong) {
  const Call call = call_of(Kind::kAllGather, DRUN_FLOAT32, DRUN_SUM, 0);
  std::vector<char> data(call.counts.recv * 4, 0x55);
  EXPECT_EQ(Pattern(call, 5).count_wrong(data.data()), call.counts.recv);
  data = carried_out(call);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(data.data() + 400, &nan, sizeof nan);
  EXPECT_EQ(Pattern(call, 5).count_wrong(data.data()), 1u);
}

TEST(BenchPattern, BlocksInWrongPlacesAreWrong) {
  const Call call = call_of(Kind::kAllGather, DRUN_INT32, DRUN_SUM, 0);
  const std::size_t block = call.counts.call * 4;
  auto data = carried_out(call);
  std::swap_ranges(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(block),
                   data.begin() + static_cast<std::ptrdiff_t>(block));
  EXPECT_GT(Pattern(call, 5).count_wrong(data.data()), call.counts.call);
  // Data of the same rank, but shifted.
  data = carried_out(call);
  std::memmove(data.data() + 1024, data.data(), block - 1024);
  EXPECT_GT(Pattern(call, 5).count_wrong(data.data()), call.counts.call / 2);
}

TEST(BenchPattern, OldDataIsWrong) {
  const Call call = call_of(Kind::kAllReduce, DRUN_FLOAT32, DRUN_SUM, 0);
  EXPECT_GT(Pattern(call, 6).count_wrong(carried_out(call).data()), call.counts.recv / 2);
}

TEST(BenchPattern, SumsWrapAndAveragesAreTruncated) {
  Call call = call_of(Kind::kAllReduce, DRUN_INT8, DRUN_SUM, 0);
  call.n_ranks = 1000;
  bool wraps = false;
  for (std::size_t i = 0; i < Pattern::kPeriod; ++i) {
    double sum = 0;
    for (int rank = 0; rank < call.n_ranks; ++rank) sum += Pattern(call, 1).given(rank, i);
    const double reduced = Pattern(call, 1).reduced(i);
    EXPECT_EQ(reduced, wrapped(sum, DRUN_INT8));
    wraps = wraps || reduced != sum;
    call.op = DRUN_AVG;
    EXPECT_EQ(Pattern(call, 1).reduced(i), static_cast<int>(wrapped(sum, DRUN_INT8)) / 1000);
    call.op = DRUN_SUM;
  }
  EXPECT_TRUE(wraps);
}

TEST(BenchPattern, ProductsFitAllTypes) {
  Call call = call_of(Kind::kAllReduce, DRUN_INT8, DRUN_PROD, 0);
  call.n_ranks = 64;
  double largest = 0;
  for (std::size_t i = 0; i < Pattern::kPeriod; ++i) {
    const double value = std::abs(Pattern(call, 3).reduced(i));
    largest = std::max(largest, value);
    EXPECT_GE(value, 1);
  }
  EXPECT_LE(largest, 64);
  EXPECT_GT(largest, 8);
}

}  // namespace
}  // namespace drun::bench
