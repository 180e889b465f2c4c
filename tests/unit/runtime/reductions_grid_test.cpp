// Reductions, compared bit by bit with a naive oracle. The grid is thinned:
// - every operation with every type, at every size of job, for the counts around changes of the algorithm; in place and
//   misaligned vary from call to call, not within each;
// - long buffers (the ring, several segments) with one operation per type, a different one at each size of job.
#include <cmath>
#include <limits>
#include <mutex>

#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using namespace testing;

std::string label(const char* what, int rank, int size, std::size_t count, drun_dtype dtype, drun_op op) {
  return std::string(what) + " at rank " + std::to_string(rank) + " of " + std::to_string(size) + ", " +
         std::to_string(count) + " " + name_of(dtype) + " " + name_of(op);
}

struct Cell {
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;
  std::size_t count = 0;
  bool in_place = false;
  std::size_t slack = 0;
  int root = 0;
};

std::vector<Cell> grid(int size) {
  const auto p = static_cast<std::size_t>(size);
  std::set<std::size_t> small{0, 1, 2, 3, p - 1, p, p + 1, 7, 63, 64, 65, 1023};
  std::vector<Cell> cells;
  const auto add = [&](drun_dtype dtype, drun_op op, std::size_t count) {
    const auto n = cells.size();
    cells.push_back({dtype, op, count, n % 2 == 1, n / 2 % 2, static_cast<int>(n % p)});
  };
  for (const auto dtype : kDtypes) {
    for (const auto op : kOps) {
      for (const std::size_t count : small) add(dtype, op, count);
    }
    for (const std::size_t count : {4097, 100'003}) add(dtype, kOps[(p + dtype + count) % 5], count);
  }
  return cells;
}

void check_allreduce(Communicator& all, const Cell& cell) {
  const int rank = all.job_context().rank(), size = all.job_context().size();
  const auto what = label("allreduce", rank, size, cell.count, cell.dtype, cell.op);
  const std::string input = given(cell.dtype, rank, 0, cell.count);
  GuardedBuffer send(input, cell.slack), recv(input.size(), cell.slack);
  char* into = cell.in_place ? send.data() : recv.data();
  const auto done = all.allreduce(send.data(), into, cell.count, cell.dtype, cell.op);
  ASSERT_TRUE(done) << what << ": " << done.error().text;
  EXPECT_TRUE(std::string(into, input.size()) == reduced(cell.dtype, cell.op, size, 0, cell.count)) << what;
  EXPECT_TRUE(cell.in_place || send.bytes() == input) << what << ": send was changed";
}

void check_reduce(Communicator& all, const Cell& cell) {
  const int rank = all.job_context().rank(), size = all.job_context().size();
  const bool is_root = rank == cell.root;
  const auto what = label("reduce", rank, size, cell.count, cell.dtype, cell.op);
  const std::string input = given(cell.dtype, rank, 0, cell.count);
  GuardedBuffer send(input, cell.slack), recv(input.size(), cell.slack);
  char* into = cell.in_place && is_root ? send.data() : cell.in_place ? nullptr : recv.data();
  const auto done = all.reduce(send.data(), into, cell.count, cell.dtype, cell.op, cell.root);
  ASSERT_TRUE(done) << what << ": " << done.error().text;
  if (is_root) {
    EXPECT_TRUE(std::string(into, input.size()) == reduced(cell.dtype, cell.op, size, 0, cell.count)) << what;
  } else {
    EXPECT_TRUE(recv.bytes() == std::string(input.size(), GuardedBuffer::kUntouched)) << what << ": recv was changed";
  }
  EXPECT_TRUE(into == send.data() || send.bytes() == input) << what << ": send was changed";
}

void check_reduce_scatter(Communicator& all, const Cell& cell) {
  const int rank = all.job_context().rank(), size = all.job_context().size();
  const auto what = label("reduce_scatter", rank, size, cell.count, cell.dtype, cell.op);
  const std::size_t first = static_cast<std::size_t>(rank) * cell.count, n_bytes = cell.count * size_of(cell.dtype);
  const std::string input = given(cell.dtype, rank, 0, static_cast<std::size_t>(size) * cell.count);
  GuardedBuffer send(input, cell.slack), recv(n_bytes, cell.slack);
  char* into = cell.in_place ? send.data() + first * size_of(cell.dtype) : recv.data();
  const auto done = all.reduce_scatter(send.data(), into, cell.count, cell.dtype, cell.op);
  ASSERT_TRUE(done) << what << ": " << done.error().text;
  const std::string expected = reduced(cell.dtype, cell.op, size, first, cell.count);
  EXPECT_TRUE(std::string(into, n_bytes) == expected) << what;
  std::string rest = input;
  if (cell.in_place) rest.replace(first * size_of(cell.dtype), n_bytes, expected);
  EXPECT_TRUE(send.bytes() == rest) << what << ": send was changed";
}

class Reductions : public ::testing::TestWithParam<int> {};

TEST_P(Reductions, AllreduceIsExact) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const Cell& cell : grid(GetParam())) check_allreduce(*all, cell);
  });
}

TEST_P(Reductions, ReduceIsExact) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const Cell& cell : grid(GetParam())) check_reduce(*all, cell);
    // Longer than a piece of the tree.
    check_reduce(*all, {DRUN_FLOAT16, DRUN_SUM, 300'001, false, 1, GetParam() - 1});
  });
}

TEST_P(Reductions, ReduceScatterIsExact) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const Cell& cell : grid(GetParam())) {
      if (cell.count < 100'000) check_reduce_scatter(*all, cell);  // all blocks together are as long as above
    }
    // All blocks together are longer than a piece of 4 Mi elements.
    if (GetParam() == 3) check_reduce_scatter(*all, {DRUN_INT8, DRUN_SUM, kPieceElements / 3 + 5, true, 1, 0});
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Reductions, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12),
                         [](const auto& param) { return "of" + std::to_string(param.param); });

template <typename T>
T allreduced(Communicator& all, T value, drun_dtype dtype, drun_op op) {
  T result{};
  const auto done = all.allreduce(&value, &result, 1, dtype, op);
  EXPECT_TRUE(done) << done.error().text;
  return result;
}

TEST(SpecialValues, KeepTheirMeaning) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  FakeJob job(3);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const auto f32 = [&](float of_1, float others, drun_op op) {
      return allreduced(*all, rank == 1 ? of_1 : others, DRUN_FLOAT32, op);
    };
    for (const auto op : kOps) EXPECT_TRUE(std::isnan(f32(kNaN, 1, op))) << name_of(op);
    for (const auto op : kOps) EXPECT_TRUE(std::isnan(f32(1, kNaN, op))) << name_of(op);
    EXPECT_EQ(f32(kInf, 1, DRUN_SUM), kInf);
    EXPECT_TRUE(std::isnan(f32(kInf, -kInf, DRUN_SUM)));
    EXPECT_EQ(f32(-kInf, 1, DRUN_MIN), -kInf);
    EXPECT_EQ(f32(-kInf, 1, DRUN_MAX), 1.0f);
    EXPECT_EQ(f32(-kInf, 2, DRUN_PROD), -kInf);
    EXPECT_TRUE(std::signbit(f32(-0.0f, -0.0f, DRUN_SUM)));
    EXPECT_FALSE(std::signbit(f32(-0.0f, 0.0f, DRUN_SUM)));
    EXPECT_EQ(allreduced<std::int8_t>(*all, 100, DRUN_INT8, DRUN_SUM), 44);
    EXPECT_EQ(allreduced<std::uint8_t>(*all, 100, DRUN_UINT8, DRUN_PROD), 64);
    EXPECT_EQ(allreduced<std::int32_t>(*all, INT32_MAX, DRUN_INT32, DRUN_SUM), INT32_MAX - 2);
    EXPECT_EQ(allreduced<std::uint64_t>(*all, UINT64_MAX, DRUN_UINT64, DRUN_SUM), UINT64_MAX - 2);
    EXPECT_EQ(allreduced<std::int32_t>(*all, -(rank + 1), DRUN_INT32, DRUN_AVG), -2);
    EXPECT_EQ(allreduced<std::int32_t>(*all, rank == 0 ? -5 : 0, DRUN_INT32, DRUN_AVG), -1);  // toward zero
  });
}

TEST(Halves, AreAddedUpInF32AndRoundedOnce) {
  FakeJob job(5);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const auto dtype : {DRUN_FLOAT16, DRUN_BFLOAT16}) {
      const auto sum = [&](float mine, drun_op op) {
        std::uint16_t half = 0;
        narrow(&mine, &half, dtype, 1);
        half = allreduced(*all, half, dtype, op);
        float result = 0;
        widen(&half, dtype, &result, 1);
        return result;
      };
      // Each 1 is less than half a unit in the last place of the first value: with rounding at each step the sum would
      // not change.
      const float large = dtype == DRUN_FLOAT16 ? 4096 : 512;
      EXPECT_EQ(sum(rank == 0 ? large : 1, DRUN_SUM), large + 4) << name_of(dtype);
      EXPECT_EQ(sum(dtype == DRUN_FLOAT16 ? 60000 : 3e38f, DRUN_SUM), std::numeric_limits<float>::infinity());
      EXPECT_TRUE(std::isnan(sum(rank == 3 ? std::nanf("") : 1, DRUN_MAX)));
      // The sum is too large for an f16, the average is not.
      EXPECT_EQ(sum(61440, DRUN_AVG), 61440);
    }
  });
}

TEST(Halves, LongerThanOnePieceAreWhole) {
  FakeJob job(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const std::size_t count = kPieceElements + 1003;
    std::string data = given(DRUN_BFLOAT16, rank, 0, count);
    const auto done = all->allreduce(data.data(), data.data(), count, DRUN_BFLOAT16, DRUN_SUM);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(data == reduced(DRUN_BFLOAT16, DRUN_SUM, 2, 0, count));
  });
}

TEST(SameBits, ComeEveryTime) {
  FakeJob job(7);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const std::size_t count = 10'001;
    std::vector<float> send(7 * count), first(count), again(count);
    for (std::size_t i = 0; i < send.size(); ++i)
      send[i] = std::sin(static_cast<float>(i) * 1.7f + static_cast<float>(rank));
    ASSERT_TRUE(all->reduce(send.data(), first.data(), count, DRUN_FLOAT32, DRUN_SUM, 2));
    ASSERT_TRUE(all->reduce(send.data(), again.data(), count, DRUN_FLOAT32, DRUN_SUM, 2));
    EXPECT_EQ(first, again);
    ASSERT_TRUE(all->reduce_scatter(send.data(), first.data(), count, DRUN_FLOAT32, DRUN_SUM));
    ASSERT_TRUE(all->reduce_scatter(send.data(), again.data(), count, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(first, again);
  });
}

TEST(Halves, ThatMismatchAreNamedByTheirOwnType) {
  FakeJob job(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<std::uint16_t> data(5);
    const auto done = all->allreduce(data.data(), data.data(), 5, rank == 0 ? DRUN_FLOAT16 : DRUN_BFLOAT16, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH);
    EXPECT_NE(done.error().text.find("allreduce #1 of 5 f16 (sum)"), std::string::npos) << done.error().text;
    EXPECT_NE(done.error().text.find("allreduce #1 of 5 bf16 (sum)"), std::string::npos) << done.error().text;
  });
}

}  // namespace
}  // namespace drun::runtime
