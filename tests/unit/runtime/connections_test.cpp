// Connections that are made when a call first needs them. In a job of six, ranks 0 and 3 are not neighbors, nor are 1
// and 4, or 2 and 5.
#include "runtime/src/backend/tcp/connections.h"

#include <sys/socket.h>

#include <atomic>

#include "base/text.h"
#include "tests/contains.h"
#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using drun::testing::contains;

TEST(Connections, ConnectNeighboursAloneAtFirst) {
  FakeJob job(6);
  job.run([&](int rank) {
    const JobContext job_context = job.job_context(rank);
    const auto links = Connections::connect(job_context);
    ASSERT_TRUE(links) << links.error().text;
    EXPECT_EQ((*links)->size(), 4u);
    EXPECT_EQ((*links)->fd((rank + 3) % 6), -1);
    EXPECT_GE((*links)->fd((rank + 1) % 6), 0);
  });
}

TEST(Connections, AreMadeWhenACallNeedsThem) {
  for (const int size : {6, 13, 40}) {
    FakeJob job(size);
    job.run([&](int rank) {
      auto all = join(job, rank);
      ASSERT_TRUE(all);
      std::vector<int> send(static_cast<std::size_t>(size), rank), recv(send.size());
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto done = all->alltoall(send.data(), recv.data(), 1, DRUN_INT32);
        ASSERT_TRUE(done) << done.error().text;
        for (int r = 0; r < size; ++r) EXPECT_EQ(recv[static_cast<std::size_t>(r)], r);
      }
    });
  }
}

// In the middle round of an alltoall two ranks need each other in both directions, but one connection is enough.
TEST(Connections, OfAPairAreOne) {
  FakeJob job(6);
  for (int repeat = 0; repeat < 20; ++repeat) {
    job.run([&](int rank) {
      const JobContext job_context = job.job_context(rank, repeat + 1);
      const auto links = Connections::connect(job_context);
      ASSERT_TRUE(links) << links.error().text;
      const int peer = (rank + 3) % 6;
      (*links)->want(peer);
      (*links)->want(peer);
      while ((*links)->busy()) {
        ASSERT_TRUE((*links)->advance("test"));
        std::vector<pollfd> fds;
        (*links)->add_to(fds);
        if ((*links)->busy()) (void)::poll(fds.data(), fds.size(), 100);
      }
      EXPECT_GE((*links)->fd(peer), 0);
      EXPECT_EQ((*links)->size(), 5u);
      // Only the byte that was written comes out at the other end.
      char byte = 'x';
      ASSERT_EQ(::send((*links)->fd(peer), &byte, 1, MSG_NOSIGNAL), 1);
      pollfd readable{(*links)->fd(peer), POLLIN, 0};
      ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
      ASSERT_EQ(::recv((*links)->fd(peer), &byte, 1, 0), 1);
      EXPECT_FALSE((*links)->busy());
    });
  }
}

// Rank 3 needs rank 0, which waits for rank 5, which comes once rank 3 is done.
TEST(Connections, AreAcceptedWhileWaitingInAnotherCall) {
  FakeJob job(6);
  Events sent;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 3) {
      int value = 42;
      const auto done = all->send(&value, 1, DRUN_INT32, 0);
      sent.add();
      ASSERT_TRUE(done) << done.error().text;
      return;
    }
    if (rank == 5) {
      sent.wait_for(1);
      ASSERT_TRUE(all->send(&rank, 1, DRUN_INT32, 0));
    }
    if (rank == 0) {
      int value = 0;
      ASSERT_TRUE(all->recv(&value, 1, DRUN_INT32, 5));
      EXPECT_EQ(sent.count(), 1);
      ASSERT_TRUE(all->recv(&value, 1, DRUN_INT32, 3));
      EXPECT_EQ(value, 42);
    }
  });
}

TEST(Connections, ToALateRankAreWaitedFor) {
  FakeJob job(6);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (const int late : {0, 3}) {
      if (rank == late) std::this_thread::sleep_for(300ms);  // the lateness is what is tested
      std::vector<int> recv(6);
      const auto done = all->gather(&rank, recv.data(), 1, DRUN_INT32, late);
      ASSERT_TRUE(done) << done.error().text;
    }
    EXPECT_TRUE(all->barrier());
  });
}

// The port of rank 0 that its 15 ranks without a connection are told leads nowhere, as if its backlog was full.
TEST(Connections, AreDialedByTheOtherSideWhereManyCannotReachIt) {
  constexpr int kSize = 24;
  FakeJob job(kSize);
  const std::string nowhere = address_without_listener();
  ASSERT_NE(nowhere, "");
  std::atomic<bool> joined{false};
  job.bend([&](int rank, const std::string& key, const std::string& value) {
    return rank > 0 && joined && key == "drun/data/0" ? nowhere + " 1" : value;
  });
  const auto began = Clock::now();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    ASSERT_TRUE(all->barrier());
    joined = true;
    std::vector<int> recv(kSize, -1);
    const auto done = all->gather(&rank, recv.data(), 1, DRUN_INT32, 0);
    ASSERT_TRUE(done) << done.error().text;
    for (int r = 0; rank == 0 && r < kSize; ++r) EXPECT_EQ(recv[static_cast<std::size_t>(r)], r);
    EXPECT_TRUE(all->barrier());
  });
  // 3 s until they ask rank 0 to dial, which it checks once a second. Not one of them a second.
  EXPECT_LT(Clock::now() - began, 10s);
}

TEST(Connections, ThatCannotBeMadeAreNamedAtTheDeadline) {
  FakeJob job(6, 3s);  // time for an attempt, even on a busy machine
  const std::string nowhere = address_without_listener();
  ASSERT_NE(nowhere, "");
  job.bend([&](int rank, const std::string& key, const std::string& value) {
    return rank == 3 && key == "drun/data/0" ? nowhere + " 1" : value;
  });
  Events over;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    int value = rank;
    if (rank == 3) {
      const auto done = all->send(&value, 1, DRUN_INT32, 0);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT);
      EXPECT_EQ(done.error().rank, 0);
      // The text may go on to say that rank 0 waits, too.
      const std::string text = "send #1 timed out after 3 s waiting for rank 0 on node0 (no connection with " +
                               nowhere.substr(0, 9) + ":" + nowhere.substr(10) + ": connect: connection refused)";
      EXPECT_EQ(done.error().text.substr(0, text.size()), text);
    } else if (rank == 0) {
      const auto done = all->recv(&value, 1, DRUN_INT32, 3);
      ASSERT_FALSE(done);
      EXPECT_TRUE(contains(done.error().text, "rank 3 on node3")) << done.error().text;
    }
    over.add();
    over.wait_for(6);
  });
}

// A rank that waits for a rank without a connection learns of the failure of another one.
TEST(Connections, ThatAreMissingDoNotHideAFailure) {
  FakeJob job(6, 60s);
  Events failed;
  const auto began = Clock::now();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 0) {
      int value = 0;
      const auto done = all->recv(&value, 1, DRUN_INT32, 3);
      failed.add();
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().rank, 4) << done.error().text;
      EXPECT_TRUE(contains(done.error().text, "rank 4 on node4 closed its connection")) << done.error().text;
    } else if (rank == 5) {  // waits for rank 4, which is gone
      int value = 0;
      EXPECT_FALSE(all->recv(&value, 1, DRUN_INT32, 4));
    } else if (rank != 4) {
      failed.wait_for(1);
    }
  });
  EXPECT_LT(Clock::now() - began, 20s);
}

TEST(Connections, WithARankThatLeftAreNotWaitedFor) {
  for (const int left : {0, 3}) {  // rank 0 is dialed, rank 3 dials
    FakeJob job(6, 60s);
    Events gone, failed;
    const auto began = Clock::now();
    job.run([&](int rank) {
      auto all = join(job, rank);
      ASSERT_TRUE(all);
      if (rank == left) {
        all->leave();
        all.reset();
        return gone.add();
      }
      if (rank != (left + 3) % 6) return failed.wait_for(1);
      gone.wait_for(1);
      int value = 0;
      const auto done = all->recv(&value, 1, DRUN_INT32, left);
      failed.add();
      ASSERT_FALSE(done);
      const std::string name = "rank " + std::to_string(left) + " on node" + std::to_string(left);
      EXPECT_EQ(done.error().status, DRUN_ERROR_PEER);
      EXPECT_EQ(done.error().rank, left);
      EXPECT_EQ(done.error().text, name + " left before recv #1");
    });
    EXPECT_LT(Clock::now() - began, 15s);
  }
}

TEST(Connections, AreRefusedToStrangersDuringACall) {
  FakeJob job(6);
  std::atomic<bool> visited{false};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 5) {  // visits rank 0, which waits
      const auto endpoint = job.value_of("drun/data/0", 10s);
      const auto parts = split(endpoint, ' ');
      ASSERT_EQ(parts.size(), 3u);
      std::vector<Fd> kept;
      for (const std::string_view visit : {"", "GET / HTTP/1.0\r\n\r\n and so on, for more than forty bytes", "DRUN"}) {
        auto stranger = start_connect("127.0.0.1", static_cast<int>(*parse_number(parts[1])));
        ASSERT_TRUE(stranger);
        ASSERT_TRUE(set_nonblocking(stranger->get(), false));
        ASSERT_TRUE(write_all(stranger->get(), visit));
        kept.push_back(std::move(*stranger));
      }
      // The connection that sent something other than a hello is closed while the call waits for this rank.
      char byte = 0;
      EXPECT_LE(::recv(kept[1].get(), &byte, 1, 0), 0);
      visited = true;
    }
    std::vector<int> recv(6);
    ASSERT_TRUE(all->gather(&rank, recv.data(), 1, DRUN_INT32, 0));
    EXPECT_TRUE(rank != 0 || (visited && recv[3] == 3));
    EXPECT_TRUE(all->barrier());
  });
}

}  // namespace
}  // namespace drun::runtime
