// Large allreduces between several hosts, some of which have several ranks: memory and network process different pieces
// at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using namespace std::chrono_literals;

constexpr std::size_t kMany = 400'001;  // of eight bytes: several pieces and an odd remainder

std::unique_ptr<Communicator> join(FakeJob& job, int rank) {
  auto all = Communicator::create(job.job_context(rank));
  EXPECT_TRUE(all) << all.error().text;
  return all ? std::move(*all) : nullptr;
}

struct Hosts {
  const char* name;
  std::vector<int> host_of_rank;
};

class Pieces : public ::testing::TestWithParam<Hosts> {
 protected:
  FakeJob make_job(std::chrono::milliseconds timeout = 60s) const {
    return FakeJob(static_cast<int>(GetParam().host_of_rank.size()), timeout);
  }
  void place(FakeJob& job) const { job.place_on_hosts(GetParam().host_of_rank); }
  // A rank on the last host.
  int last() const { return static_cast<int>(GetParam().host_of_rank.size()) - 1; }
};

class PiecesThatFail : public Pieces {};

TEST_P(Pieces, AveragesAreDividedOnce) {
  auto job = make_job();
  place(job);
  const int size = job.size();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const std::size_t count : {kMany, 3 * kMany / 2}) {
      std::vector<std::int64_t> data(count + 1, 77);
      for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::int64_t>(i) * (rank + 1) + 1;
      ASSERT_TRUE(all->allreduce(data.data(), data.data(), count, DRUN_INT64, DRUN_AVG));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto sum = static_cast<std::int64_t>(i) * (size * (size + 1) / 2) + size;
        wrong += data[i] == sum / size ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0u) << "rank " << rank << ", " << count;
      EXPECT_EQ(data[count], 77);
    }
  });
}

TEST_P(Pieces, AreTheSameBitsEverywhereAndEveryTime) {
  auto job = make_job();
  place(job);
  std::mutex mutex;
  std::vector<std::vector<double>> results;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const double scale = std::pow(10.0, rank % 5);
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<double> data(kMany);  // the sum depends on the order
      for (std::size_t i = 0; i < kMany; ++i) data[i] = scale / static_cast<double>(i + 1);
      ASSERT_TRUE(all->allreduce(data.data(), data.data(), kMany, DRUN_FLOAT64, DRUN_SUM));
      const std::lock_guard<std::mutex> lock(mutex);
      results.push_back(std::move(data));
    }
  });
  ASSERT_EQ(results.size(), 2 * GetParam().host_of_rank.size());
  for (const auto& result : results) EXPECT_EQ(std::memcmp(result.data(), results[0].data(), kMany * 8), 0);
}

TEST_P(Pieces, ALateRankIsWaitedFor) {
  auto job = make_job();
  place(job);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const int late : {0, last()}) {
      if (late == rank) std::this_thread::sleep_for(300ms);  // the lateness is what is tested
      std::vector<double> data(kMany, 1.0);
      ASSERT_TRUE(all->allreduce(data.data(), data.data(), kMany, DRUN_FLOAT64, DRUN_SUM));
      EXPECT_EQ(std::accumulate(data.begin(), data.end(), 0.0), static_cast<double>(kMany) * (last() + 1));
    }
  });
}

TEST_P(PiecesThatFail, ARankThatNeverComesIsNamed) {
  auto job = make_job(500ms);
  place(job);
  std::atomic<int> n_over{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == last()) {
      while (n_over < last()) std::this_thread::sleep_for(5ms);
      return;
    }
    std::vector<double> data(kMany);
    const auto done = all->allreduce(data.data(), data.data(), kMany, DRUN_FLOAT64, DRUN_SUM);
    ++n_over;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
    EXPECT_EQ(done.error().rank, last()) << done.error().text;
  });
}

TEST_P(PiecesThatFail, ARankThatLeavesIsNamed) {
  auto job = make_job();
  place(job);
  const auto began = Clock::now();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    ASSERT_TRUE(all->barrier());
    if (rank == last()) return;
    std::vector<double> data(kMany);
    const auto done = all->allreduce(data.data(), data.data(), kMany, DRUN_FLOAT64, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER) << done.error().text;
    EXPECT_EQ(done.error().rank, last()) << done.error().text;
  });
  EXPECT_LT(Clock::now() - began, 20s);
}

TEST_P(PiecesThatFail, AnAbortEndsThemOnTheirWay) {
  auto job = make_job();
  place(job);
  const auto began = Clock::now();
  std::atomic<int> n_calls{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    Status done;
    std::vector<double> data(kMany);
    while (done) {
      if (rank == 0 && ++n_calls == 3) job.abort({last(), "node", 812, "killed by signal 9"});
      done = all->allreduce(data.data(), data.data(), kMany, DRUN_FLOAT64, DRUN_SUM);
    }
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER) << done.error().text;
    EXPECT_EQ(done.error().rank, last()) << done.error().text;
  });
  EXPECT_LT(Clock::now() - began, 20s);
}

TEST_P(PiecesThatFail, CountsThatDifferAreNamed) {
  auto job = make_job();
  place(job);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const std::size_t count = rank == last() ? kMany - 1 : kMany;
    std::vector<double> data(count);
    const auto done = all->allreduce(data.data(), data.data(), count, DRUN_FLOAT64, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH) << done.error().text;
  });
}

const Hosts kEqualHosts{"equal_hosts", {0, 0, 1, 1, 2, 2}};
const Hosts kALaneForTwo{"a_lane_for_two", {0, 0, 0, 1, 1}};
const Hosts kOneLane{"one_lane", {0, 0, 0, 1}};

std::string name_of_hosts(const ::testing::TestParamInfo<Hosts>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(On, Pieces, ::testing::Values(kEqualHosts, kALaneForTwo, kOneLane), name_of_hosts);
INSTANTIATE_TEST_SUITE_P(On, PiecesThatFail, ::testing::Values(kALaneForTwo, kOneLane), name_of_hosts);

}  // namespace
}  // namespace drun::runtime
