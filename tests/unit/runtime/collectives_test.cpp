// Every collective over real TCP between threads, against a reference computed from all inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <tuple>

#include "runtime/src/algorithm/doubling.h"
#include "runtime/src/algorithm/ring.h"
#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/backend/tcp/mesh.h"
#include "runtime/src/dtype.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;

// Small integers: sums and products of floats are exact in any order. They repeat after kPeriod elements.
constexpr std::size_t kPeriod = 15;
template <typename T>
T input(int rank, std::size_t i) {
  return static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5 + (i % 3 == 0 ? 1 : 0));
}

template <typename T>
double reference(drun_op op, int size, std::size_t i) {
  double result = static_cast<double>(input<T>(0, i));
  for (int rank = 1; rank < size; ++rank) {
    const double value = static_cast<double>(input<T>(rank, i));
    switch (op) {
      case DRUN_SUM:
      case DRUN_AVG:
        result += value;
        break;
      case DRUN_PROD:
        result *= value;
        break;
      case DRUN_MIN:
        result = std::min(result, value);
        break;
      case DRUN_MAX:
        result = std::max(result, value);
        break;
      case DRUN_ADASUM:
        ADD_FAILURE() << "has a test of its own";
        break;
    }
  }
  if (op != DRUN_AVG) return result;
  result /= size;
  return std::is_integral_v<T> ? std::trunc(result) : result;
}

template <typename T>
std::vector<T> inputs(int rank, std::size_t count) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = input<T>(rank, i);
  return result;
}

// True if both are the same number in type T: for small types the reference wraps.
template <typename T>
bool equals(T value, double expected) {
  if constexpr (std::is_integral_v<T>) {
    return value == static_cast<T>(static_cast<std::int64_t>(expected));
  } else {
    return std::abs(static_cast<double>(value) - expected) <= 1e-6 * std::abs(expected);
  }
}

template <typename T>
void check_allreduce(Communicator& all, std::size_t count, drun_dtype dtype, drun_op op) {
  const int rank = all.job_context().rank(), size = all.job_context().size();
  const auto send = inputs<T>(rank, count);
  std::vector<T> recv(count + 1, T{77});  // one more element, which must not change
  const auto done = all.allreduce(send.data(), recv.data(), count, dtype, op);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(recv[count], T{77});
  std::array<double, kPeriod> expected{};
  for (std::size_t i = 0; i < kPeriod; ++i) expected[i] = reference<T>(op, size, i);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += equals(recv[i], expected[i % kPeriod]) ? 0 : 1;
  EXPECT_EQ(wrong, 0u) << "rank " << rank << " of " << size << ", " << count << " " << name_of(dtype) << " "
                       << name_of(op);

  auto in_place = send;
  ASSERT_TRUE(all.allreduce(in_place.data(), in_place.data(), count, dtype, op));
  recv.pop_back();
  EXPECT_EQ(in_place, recv);
}

std::unique_ptr<Communicator> join(FakeJob& job, int rank) {
  auto all = Communicator::create(job.job_context(rank));
  EXPECT_TRUE(all) << all.error().text;
  return all ? std::move(*all) : nullptr;
}

Span span_of(std::vector<std::int32_t>& data) {
  return {reinterpret_cast<char*>(data.data()), data.size(), DRUN_INT32};
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, AllreduceMatchesTheReference) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const std::size_t count : {0, 1, 2, 3, 7, 1000, 65537}) {
      check_allreduce<float>(*all, count, DRUN_FLOAT32, DRUN_SUM);
      check_allreduce<std::int64_t>(*all, count, DRUN_INT64, DRUN_AVG);
    }
    for (const auto op : {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX, DRUN_AVG}) {
      for (const std::size_t count : {5, 20001}) {  // the tree and the ring
        check_allreduce<std::int8_t>(*all, count, DRUN_INT8, op == DRUN_AVG || op == DRUN_PROD ? DRUN_MAX : op);
        check_allreduce<std::uint8_t>(*all, count, DRUN_UINT8, op == DRUN_AVG || op == DRUN_PROD ? DRUN_MIN : op);
        check_allreduce<std::int32_t>(*all, count, DRUN_INT32, op == DRUN_PROD ? DRUN_SUM : op);
        check_allreduce<std::uint32_t>(*all, count, DRUN_UINT32, op == DRUN_PROD ? DRUN_SUM : op);
        check_allreduce<std::int64_t>(*all, count, DRUN_INT64, op);
        check_allreduce<std::uint64_t>(*all, count, DRUN_UINT64, op);
        check_allreduce<float>(*all, count, DRUN_FLOAT32, op);
        check_allreduce<double>(*all, count, DRUN_FLOAT64, op);
      }
    }
    check_allreduce<double>(*all, 1'000'003, DRUN_FLOAT64, DRUN_SUM);
  });
}

TEST_P(Collectives, AllreduceGivesTheSameBitsEverywhereAndEveryTime) {
  FakeJob job(GetParam());
  std::mutex mutex;
  std::vector<std::vector<float>> results;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (const std::size_t count : {1001, 100'003}) {
        std::vector<float> data(100'003);
        // Values whose sum depends on the order.
        for (std::size_t i = 0; i < count; ++i) {
          data[i] = std::sin(static_cast<float>(i) * 1.7f + static_cast<float>(rank)) *
                    std::pow(10.0f, static_cast<float>(rank % 7));
        }
        ASSERT_TRUE(all->allreduce(data.data(), data.data(), count, DRUN_FLOAT32, DRUN_AVG));
        const std::lock_guard<std::mutex> lock(mutex);
        results.push_back(count == data.size() ? data : std::vector<float>(data.begin(), data.begin() + 1001));
      }
    }
  });
  for (const auto& result : results) {
    const auto same_count =
        std::find_if(results.begin(), results.end(), [&](const auto& r) { return r.size() == result.size(); });
    EXPECT_EQ(std::memcmp(result.data(), same_count->data(), result.size() * sizeof(float)), 0);
  }
}

TEST_P(Collectives, RingDoublingAndHalvingAgreeOnAnyCount) {
  FakeJob job(GetParam());
  if (job.size() == 1) return;
  job.run([&](int rank) {
    const JobContext job_context = job.job_context(rank);
    auto links = Connections::connect(job_context);
    ASSERT_TRUE(links) << links.error().text;
    Mesh mesh(job_context, std::move(*links), Group::all(job_context));
    std::uint64_t seq = 0;
    for (const std::size_t count : {0, 1, 2, 3, 15, 16, 17, 32768, 32769, 200'001}) {
      Operation operation;
      operation.kind = OpKind::kAllreduce;
      operation.dtype = DRUN_INT32;
      operation.count = count;
      operation.timeout = std::chrono::seconds(30);
      const auto given = inputs<std::int32_t>(rank, count);
      std::vector<std::vector<std::int32_t>> results;
      for (const auto allreduce : {ring_allreduce, doubling_allreduce, halving_allreduce}) {
        operation.seq = ++seq;
        results.push_back(given);
        const auto done = allreduce(mesh, operation, span_of(results.back()));
        ASSERT_TRUE(done) << done.error().text;
      }
      EXPECT_EQ(results[1], results[0]) << count;
      EXPECT_EQ(results[2], results[0]) << count;
    }
  });
}

TEST_P(Collectives, BroadcastReachesAllFromEveryRoot) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (int root = 0; root < job.size(); ++root) {
      for (const std::size_t count : {0, 1, 7, 300'000}) {
        auto data = inputs<std::int32_t>(rank, count);
        const auto done = all->broadcast(data.data(), count, DRUN_INT32, root);
        ASSERT_TRUE(done) << done.error().text;
        EXPECT_EQ(data, inputs<std::int32_t>(root, count));
      }
    }
    std::vector<std::uint16_t> half{1, 2, 3};  // moved unchanged
    EXPECT_TRUE(all->broadcast(half.data(), half.size(), DRUN_BFLOAT16, 0));
  });
}

TEST_P(Collectives, AllgatherOrdersByRank) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const std::size_t count : {0, 1, 7, 100'000}) {
      const auto send = inputs<double>(rank, count);
      const auto size = static_cast<std::size_t>(job.size());
      std::vector<double> recv(count * size + 1, -1), in_place(count * size + 1, -1), expected;
      for (int r = 0; r < job.size(); ++r) {
        const auto part = inputs<double>(r, count);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      expected.push_back(-1);
      auto done = all->allgather(send.data(), recv.data(), count, DRUN_FLOAT64);
      ASSERT_TRUE(done) << done.error().text;
      EXPECT_EQ(recv, expected);
      double* own = in_place.data() + static_cast<std::size_t>(rank) * count;
      std::copy(send.begin(), send.end(), own);
      ASSERT_TRUE(all->allgather(own, in_place.data(), count, DRUN_FLOAT64));
      EXPECT_EQ(in_place, expected);
    }
  });
}

TEST_P(Collectives, BarrierWaitsForTheLast) {
  FakeJob job(GetParam());
  std::atomic<int> arrived{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      ASSERT_TRUE(all->barrier());
      EXPECT_GE(arrived.load(), round * job.size());
      ASSERT_TRUE(all->barrier());
    }
  });
}

TEST_P(Collectives, ThousandsInARowStayInOrder) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (int i = 0; i < 300; ++i) {
      std::int64_t value = i + rank;
      ASSERT_TRUE(all->allreduce(&value, &value, 1, DRUN_INT64, DRUN_MAX));
      ASSERT_EQ(value, i + job.size() - 1);
      ASSERT_TRUE(all->broadcast(&value, 1, DRUN_INT64, i % job.size()));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, ::testing::Values(1, 2, 3, 4, 5, 7, 8, 16),
                         [](const auto& param) { return "of" + std::to_string(param.param); });

}  // namespace
}  // namespace drun::runtime
