// The errors that ranks get if one of them does the wrong thing, does nothing, or dies.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/text.h"
#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/backend/tcp/socket.h"
#include "tests/contains.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::address_without_listener;
using testing::FakeJob;
using namespace std::chrono_literals;

std::unique_ptr<Communicator> join(FakeJob& job, int rank) {
  auto all = Communicator::create(job.job_context(rank));
  EXPECT_TRUE(all) << all.error().text;
  return all ? std::move(*all) : nullptr;
}

using drun::testing::contains;

TEST(Mismatch, NamesBothSides) {
  FakeJob job(2);
  std::vector<Failure> failures(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<float> data(12);
    auto done = rank == 0 ? all->allreduce(data.data(), data.data(), 12, DRUN_FLOAT32, DRUN_SUM)
                          : all->broadcast(data.data(), 10, DRUN_FLOAT32, 1);
    if (rank == 1 && done) done = all->barrier();  // a root only sends, so its next call fails
    ASSERT_FALSE(done);
    failures[static_cast<std::size_t>(rank)] = done.error();
    // The communicator stays broken, for the same reason.
    const auto later = all->barrier();
    ASSERT_FALSE(later);
    EXPECT_TRUE(contains(later.error().text, done.error().text));
  });
  for (const auto& failure : failures) {
    EXPECT_EQ(failure.status, DRUN_ERROR_MISMATCH);
    EXPECT_TRUE(contains(failure.text, "allreduce #1 of 12 f32 (sum)")) << failure.text;
    EXPECT_TRUE(contains(failure.text, "broadcast #1 of 10 f32 from rank 1")) << failure.text;
    EXPECT_TRUE(contains(failure.text, "rank 0 on node0")) << failure.text;
    EXPECT_TRUE(contains(failure.text, "rank 1 on node1")) << failure.text;
  }
}

TEST(Mismatch, OfCountsReachesRanksThatDidNotMeetIt) {
  FakeJob job(7);
  std::mutex mutex;
  std::vector<std::string> texts;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<double> data(100'001);
    const auto done = all->allreduce(data.data(), data.data(), rank == 5 ? 100'001 : 100'000, DRUN_FLOAT64, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH) << done.error().text;
    const std::lock_guard<std::mutex> lock(mutex);
    texts.push_back(done.error().text);
  });
  for (const auto& text : texts) {
    EXPECT_TRUE(contains(text, "100001 f64") && contains(text, "100000 f64") && contains(text, "rank 5 on node5"))
        << text;
  }
}

TEST(Mismatch, OfAllgathervCountsIsFoundWhereTheSumIsTheSame) {
  FakeJob job(3);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<float> send(2), recv(6);
    const std::size_t counts[] = {2, 2, 2}, others[] = {1, 3, 2};
    const auto done = all->allgatherv(send.data(), 2, recv.data(), rank == 2 ? others : counts, nullptr, DRUN_FLOAT32);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH) << done.error().text;
    EXPECT_TRUE(contains(done.error().text, "allgatherv #1 of 6 f32 in all (counts ")) << done.error().text;
  });
}

TEST(Timeout, NamesTheRankThatNeverCame) {
  FakeJob job(5, 500ms);
  std::atomic<int> failed{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 3) {  // alive, but calls nothing until the others have given up
      const auto until = Clock::now() + 10s;
      while (failed < 4 && Clock::now() < until) std::this_thread::yield();
      return;
    }
    float value = 1;
    const auto done = all->allreduce(&value, &value, 1, DRUN_FLOAT32, DRUN_SUM);
    ++failed;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().rank, 3) << done.error().text;
    EXPECT_EQ(done.error().host, "node3");
    EXPECT_TRUE(contains(done.error().text, "allreduce #1")) << done.error().text;
  });
  EXPECT_EQ(failed, 4);
}

// A late rank whose own deadline has not passed waits, too, and publishes this after a second.
TEST(Timeout, DoesNotBlameALateRankThatWaitsToo) {
  FakeJob job(4, 4s);
  std::atomic<int> failed{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 3) {
      const auto until = Clock::now() + 20s;
      while (failed < 3 && Clock::now() < until) std::this_thread::sleep_for(1ms);
      return;
    }
    if (rank == 2) std::this_thread::sleep_for(2500ms);  // the lateness is what is tested
    float value = 1;
    const auto done = all->allreduce(&value, &value, 1, DRUN_FLOAT32, DRUN_SUM);
    ++failed;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().rank, 3) << "rank " << rank << " says: " << done.error().text;
  });
  EXPECT_EQ(failed, 3);
}

// The part of the call inside the hosts and the part between them number the ranks differently.
TEST(Timeout, OfABroadcastBetweenHostsNamesTheRootThatNeverCame) {
  FakeJob job(5, 500ms);
  job.place_on_hosts({0, 0, 0, 1, 1});
  std::atomic<int> failed{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 0) {
      const auto until = Clock::now() + 20s;
      while (failed < 4 && Clock::now() < until) std::this_thread::sleep_for(1ms);
      return;
    }
    std::vector<float> data(1000);
    const auto done = all->broadcast(data.data(), data.size(), DRUN_FLOAT32, 0);
    ++failed;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
    EXPECT_EQ(done.error().rank, 0) << done.error().text;
  });
  EXPECT_EQ(failed, 4);
}

// Rank 0 waits for rank 1 of its host first: that is no time in which it was stopped.
TEST(Timeout, OfACallBetweenHostsCountsTheWaitsInsideThem) {
  FakeJob job(3, 4s);
  job.place_on_hosts({0, 0, 1});
  std::atomic<bool> failed{false};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 2) {
      const auto until = Clock::now() + 20s;
      while (!failed && Clock::now() < until) std::this_thread::sleep_for(1ms);
      return;
    }
    if (rank == 1) std::this_thread::sleep_for(3s);  // the lateness is what is tested
    const auto began = Clock::now();
    float value = 1;
    const auto done = all->allreduce(&value, &value, 1, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    if (rank == 1) return;
    failed = true;
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
    EXPECT_EQ(done.error().rank, 2) << done.error().text;
    EXPECT_LT(Clock::now() - began, 8s) << "its deadline, and 2 s to find a reason; not 3 s more";
  });
}

TEST(Abort, EndsEveryWaitAtOnceAndNamesTheCulprit) {
  FakeJob job(4, 60s);
  std::atomic<int> waiting{0};
  const auto began = Clock::now();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 2) {
      const auto until = Clock::now() + 10s;
      while (waiting < 3 && Clock::now() < until) std::this_thread::yield();
      job.abort({2, "node2", 812, "exited with signal 9"});
      return;
    }
    ++waiting;
    const auto done = all->barrier();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER);
    EXPECT_EQ(done.error().rank, 2);
    EXPECT_EQ(done.error().text, "barrier #1: rank 2 on node2 (pid 812): exited with signal 9");
  });
  EXPECT_LT(Clock::now() - began, 10s);
}

TEST(Closed, NamesTheRankWhenNobodyElseTells) {
  FakeJob job(3, 60s);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 1) return;  // leaves: its connections close
    std::vector<double> data(1'000'000);
    const auto done = all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT64, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER);
    EXPECT_EQ(done.error().rank, 1) << done.error().text;
    EXPECT_TRUE(contains(done.error().text, "rank 1 on node1 closed its connection during allreduce #1"))
        << done.error().text;
  });
}

TEST(Late, RankIsWaitedFor) {
  FakeJob job(2, 20s);
  std::atomic<bool> sent{false};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<double> data(2'000'000, 1.0);  // more than sockets buffer
    if (rank == 1) {
      while (!sent) std::this_thread::yield();
      std::this_thread::sleep_for(300ms);  // the lateness is what is tested
    }
    sent = true;
    const auto done = all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT64, DRUN_SUM);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(data.back(), 2.0);
  });
}

TEST(Stranger, LearnsNothingAndDisturbsNothing) {
  FakeJob job(3);
  job.run([&](int rank) {
    if (rank == 2) {
      // Before this rank joins, strangers connect to the ports of the two others, which wait for it.
      for (int victim = 0; victim < 2; ++victim) {
        const auto endpoint = job.value_of("drun/data/" + std::to_string(victim), 10s);
        const auto parts = split(endpoint, ' ');
        ASSERT_EQ(parts.size(), 3u);
        const int port = static_cast<int>(*parse_number(parts[1]));
        for (const std::string_view visit :
             {"", "GET / HTTP/1.0\r\n\r\n and so on, for more than forty bytes", "DRUN"}) {
          auto stranger = start_connect("127.0.0.1", port);
          ASSERT_TRUE(stranger);
          ASSERT_TRUE(set_nonblocking(stranger->get(), false));
          ASSERT_TRUE(write_all(stranger->get(), visit));
          ::shutdown(stranger->get(), SHUT_WR);
          static std::vector<Fd> kept;  // some stay open while the job is set up
          kept.push_back(std::move(*stranger));
        }
      }
    }
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    float value = 1;
    ASSERT_TRUE(all->allreduce(&value, &value, 1, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(value, 3.0f);
  });
}

TEST(Stranger, WithAnotherKeyIsNoPeer) {
  FakeJob job(2);
  Timeouts timeouts;
  timeouts.init = 1s;
  job.set_timeouts(timeouts);
  rendezvous::JobKey other{};
  other.fill(9);
  job.set_key_of(1, other);
  job.run([&](int rank) {
    auto all = Communicator::create(job.job_context(rank));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().status, DRUN_ERROR_TIMEOUT);
    EXPECT_EQ(all.error().rank, 1 - rank);
    EXPECT_TRUE(contains(all.error().text, "no connection with rank " + std::to_string(1 - rank))) << all.error().text;
  });
}

TEST(Dialing, IsPassedOnWhereOneSideCannotReachTheOther) {
  FakeJob job(4);
  // Rank 3 is told ports of ranks 0 and 1 on which no process listens; they can reach rank 3.
  const std::string nowhere = address_without_listener();
  ASSERT_NE(nowhere, "");
  job.bend([&](int rank, const std::string& key, const std::string& value) {
    return rank == 3 && key.rfind("drun/data/", 0) == 0 ? nowhere + " 1" : value;
  });
  job.run([&](int rank) {
    const JobContext job_context = job.job_context(rank);
    const auto links = Connections::connect(job_context, 200ms);
    ASSERT_TRUE(links) << links.error().text;
    EXPECT_EQ((*links)->size(), neighbors(rank, 4).size());
  });
}

TEST(Arguments, AreCheckedBeforeAnythingIsSent) {
  FakeJob job(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    float data[8] = {};
    if (rank == 0) {
      EXPECT_EQ(all->allreduce(data, data, 4, static_cast<drun_dtype>(99), DRUN_SUM).error().status,
                DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->allreduce(data, data, 4, DRUN_FLOAT32, static_cast<drun_op>(9)).error().status,
                DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->allreduce(data, data + 1, 4, DRUN_FLOAT32, DRUN_SUM).error().status, DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->allreduce(nullptr, data, 4, DRUN_FLOAT32, DRUN_SUM).error().status, DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->allreduce(data, data, SIZE_MAX / 2, DRUN_FLOAT32, DRUN_SUM).error().status, DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->broadcast(data, 4, DRUN_FLOAT32, 2).error().status, DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->broadcast(data, 4, DRUN_FLOAT32, -1).error().status, DRUN_ERROR_ARGUMENT);
      EXPECT_EQ(all->allgather(data + 1, data, 2, DRUN_FLOAT32).error().status, DRUN_ERROR_ARGUMENT);
    }
    EXPECT_TRUE(all->barrier());
  });
}

}  // namespace
}  // namespace drun::runtime
