#include "bench/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
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

// ---- Sums and averages as NCCL computes them: each step is rounded to the type of the elements.

constexpr drun_dtype kFloats[] = {DRUN_FLOAT16, DRUN_BFLOAT16, DRUN_FLOAT32, DRUN_FLOAT64};

double rounded(double value, drun_dtype dtype) {
  char bytes[8] = {};
  encode(is_integer(dtype) ? wrapped(value, dtype) : value, dtype, bytes);
  return decode(bytes, dtype);
}

enum class Order { kRing, kTree };

// Adds the numbers from `begin` to `end`, one after the other or in pairs of halves.
double added(const double* begin, const double* end, Order order, drun_dtype dtype) {
  if (end - begin == 1) return *begin;
  const double* const middle = order == Order::kRing ? end - 1 : begin + (end - begin) / 2;
  if (order == Order::kTree) {
    return rounded(added(begin, middle, order, dtype) + added(middle, end, order, dtype), dtype);
  }
  double sum = *begin;
  for (const double* value = begin + 1; value != end; ++value) sum = rounded(sum + *value, dtype);
  return sum;
}

Call reduction_of(int n_ranks, drun_dtype dtype, drun_op op) {
  Call call = call_of(Kind::kAllReduce, dtype, op, 0);
  call.n_ranks = n_ranks;
  call.counts.send = call.counts.recv = call.counts.call = Pattern::kPeriod;
  return call;
}

// All ranks' input of one period, by element.
using Inputs = std::vector<std::vector<double>>;
Inputs inputs_of(const Call& call, const Pattern& pattern) {
  Inputs out(Pattern::kPeriod);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (int rank = 0; rank < call.n_ranks; ++rank) out[i].push_back(pattern.given(rank, i));
  }
  return out;
}

// NCCL multiplies the input by the rounded 1/n before it adds. The chain of a ring may begin with any rank. Adding 0
// rounds nothing, and is left out.
std::vector<char> reduced_by_nccl(const Call& call, const Inputs& inputs, Order order, int first = 0) {
  const double scale = rounded(1.0 / call.n_ranks, call.dtype);
  std::vector<char> out;
  std::vector<double> terms;
  for (const auto& values : inputs) {
    terms.clear();
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double value = values[(k + static_cast<std::size_t>(first)) % values.size()];
      if (value != 0) terms.push_back(call.op == DRUN_AVG ? rounded(value * scale, call.dtype) : value);
    }
    if (terms.empty()) terms.push_back(0);
    char bytes[8] = {};
    encode(added(terms.data(), terms.data() + terms.size(), order, call.dtype), call.dtype, bytes);
    out.insert(out.end(), bytes, bytes + element_size(call.dtype));
  }
  return out;
}

std::string text_of(const Call& call) {
  return dtype_name(call.dtype) + " " + op_name(call.op) + " on " + std::to_string(call.n_ranks);
}

TEST(BenchPattern, NcclsRoundingIsNotWrong) {
  for (const auto dtype : kFloats) {
    for (const auto op : {DRUN_SUM, DRUN_AVG}) {
      for (const int n_ranks : {1, 2, 3, 6, 7, 24, 255, 256}) {
        const Call call = reduction_of(n_ranks, dtype, op);
        const Pattern pattern(call, 5);
        const auto inputs = inputs_of(call, pattern);
        for (const int first : {0, n_ranks / 3}) {
          EXPECT_EQ(pattern.count_wrong(reduced_by_nccl(call, inputs, Order::kRing, first).data()), 0u)
              << text_of(call) << ", ring from " << first;
          EXPECT_EQ(pattern.count_wrong(reduced_by_nccl(call, inputs, Order::kTree, first).data()), 0u)
              << text_of(call) << ", tree from " << first;
        }
      }
    }
  }
}

// The tolerance is below what a single rank contributes to an element.
void expect_lost_and_doubled_are_counted(const Call& call) {
  const Pattern pattern(call, 5);
  const auto inputs = inputs_of(call, pattern);
  const auto n_wrong = [&](const Inputs& changed) {
    return pattern.count_wrong(reduced_by_nccl(call, changed, Order::kRing).data());
  };
  const auto n_ranks = static_cast<std::size_t>(call.n_ranks);
  for (std::size_t rank = n_ranks / 3; rank < n_ranks; rank += 1 + n_ranks / 2) {
    auto changed = inputs;
    std::uint64_t n_contributed = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i][rank] != 0) ++n_contributed;
      changed[i][rank] = 0;
    }
    EXPECT_GT(n_contributed, 4u) << text_of(call);
    EXPECT_EQ(n_wrong(changed), n_contributed) << text_of(call) << " without " << rank;
    for (std::size_t i = 0; i < inputs.size(); ++i) changed[i][rank] = inputs[i][(rank + 1) % n_ranks];
    EXPECT_GT(n_wrong(changed), 0u) << text_of(call) << " with the next one in place of " << rank;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      changed[i][rank] = inputs[i][rank];
      changed[i].push_back(inputs[i][rank]);
    }
    EXPECT_EQ(n_wrong(changed), n_contributed) << text_of(call) << " with twice " << rank;
  }
}

// Averages of integers are left out: the quotient hides a lost rank from many elements, and that of int8 is 0 on 128
// ranks and more.
TEST(BenchPattern, ALostOrDoubledRankIsWrong) {
  for (const int n_ranks : {2, 3, 24}) {
    for (const auto dtype : all_dtypes()) expect_lost_and_doubled_are_counted(reduction_of(n_ranks, dtype, DRUN_SUM));
    for (const auto dtype : kFloats) expect_lost_and_doubled_are_counted(reduction_of(n_ranks, dtype, DRUN_AVG));
  }
  for (const auto op : {DRUN_SUM, DRUN_AVG}) expect_lost_and_doubled_are_counted(reduction_of(700, DRUN_BFLOAT16, op));
}

// So that a short message, too, contains every rank's input.
TEST(BenchPattern, EveryRankContributesToAFewElements) {
  const Call call = reduction_of(1024, DRUN_BFLOAT16, DRUN_AVG);
  for (const std::uint64_t round : {1u, 2u, 3u}) {
    const Pattern pattern(call, round);
    for (int rank = 0; rank < call.n_ranks; ++rank) {
      int n_contributed = 0;
      for (std::size_t i = 0; i < 256; ++i) n_contributed += pattern.given(rank, i) != 0 ? 1 : 0;
      EXPECT_GE(n_contributed, 1) << rank;
    }
  }
}

}  // namespace
}  // namespace drun::bench
