// Every collective if a rank doesn't call, leaves, is killed, or calls with different arguments.
#include "tests/contains.h"
#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using drun::testing::contains;

constexpr std::size_t kMax = 200'000;  // elements of a block: more than sockets buffer

// The buffers of one rank for any collective.
struct Buffers {
  Buffers(int size, std::size_t count) : send(count * static_cast<std::size_t>(size)), recv(send) {}
  std::vector<double> send, recv;
};

struct Call {
  const char* name;
  bool has_op, has_root;
  // `count` is the number of elements of each block.
  std::function<Status(Communicator&, Buffers&, std::size_t count, drun_dtype, drun_op, int root)> call;
};

std::vector<std::size_t> counts(Communicator& all, std::size_t count) {
  return std::vector<std::size_t>(static_cast<std::size_t>(all.job_context().size()), count);
}

const Call kCalls[] = {
    {"allreduce", true, false,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op op, int) {
       return all.allreduce(b.send.data(), b.recv.data(), n, t, op);
     }},
    {"reduce", true, true,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op op, int root) {
       return all.reduce(b.send.data(), b.recv.data(), n, t, op, root);
     }},
    {"reduce_scatter", true, false,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op op, int) {
       return all.reduce_scatter(b.send.data(), b.recv.data(), n, t, op);
     }},
    {"broadcast", false, true,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int root) {
       return all.broadcast(b.send.data(), n, t, root);
     }},
    {"allgather", false, false,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int) {
       return all.allgather(b.send.data(), b.recv.data(), n, t);
     }},
    {"allgatherv", false, false,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int) {
       return all.allgatherv(b.send.data(), n, b.recv.data(), counts(all, n).data(), nullptr, t);
     }},
    {"gather", false, true,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int root) {
       return all.gather(b.send.data(), b.recv.data(), n, t, root);
     }},
    {"scatter", false, true,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int root) {
       return all.scatter(b.send.data(), b.recv.data(), n, t, root);
     }},
    {"alltoall", false, false,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int) {
       return all.alltoall(b.send.data(), b.recv.data(), n, t);
     }},
    {"alltoallv", false, false,
     [](Communicator& all, Buffers& b, std::size_t n, drun_dtype t, drun_op, int) {
       return all.alltoallv(b.send.data(), counts(all, n).data(), nullptr, b.recv.data(), counts(all, n).data(),
                            nullptr, t);
     }},
};

class Every : public ::testing::TestWithParam<Call> {
 protected:
  Status call(Communicator& all, std::size_t count, drun_dtype dtype = DRUN_FLOAT32, drun_op op = DRUN_SUM,
              int root = 0) {
    Buffers buffers(all.job_context().size(), count);
    return GetParam().call(all, buffers, count, dtype, op, root);
  }
};

// Runs different calls on two ranks, then barriers, in which a rank that only sends learns of the mismatch. Returns
// both errors.
std::string mismatch(const std::function<Status(Communicator&, int rank)>& body,
                     std::chrono::milliseconds op_timeout = 30s) {
  FakeJob job(2, op_timeout);
  std::vector<Failure> failures(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    auto done = body(*all, rank);
    for (int i = 0; i < 2 && done; ++i) done = all->barrier();
    ASSERT_FALSE(done);
    failures[static_cast<std::size_t>(rank)] = done.error();
  });
  for (const auto& failure : failures) {
    EXPECT_EQ(failure.status, DRUN_ERROR_MISMATCH) << failure.text;
    EXPECT_TRUE(contains(failure.text, "rank 0 on node0") && contains(failure.text, "rank 1 on node1")) << failure.text;
  }
  return failures[0].text + "\n" + failures[1].text;
}

TEST_P(Every, NamesBothWhoseCountsDiffer) {
  const auto text = mismatch([&](Communicator& all, int rank) { return call(all, rank == 0 ? 10 : 12); });
  const bool shows_sum = GetParam().name == std::string("allgatherv");
  EXPECT_TRUE(contains(text, GetParam().name + std::string(" #1"))) << text;
  EXPECT_TRUE(contains(text, shows_sum ? "20" : "10") && contains(text, shows_sum ? "24" : "12")) << text;
}

TEST_P(Every, NamesBothWhoseTypesDiffer) {
  const auto text =
      mismatch([&](Communicator& all, int rank) { return call(all, 10, rank == 0 ? DRUN_FLOAT16 : DRUN_UINT32); });
  EXPECT_TRUE(contains(text, " f16") && contains(text, " u32")) << text;
}

TEST_P(Every, NamesBothWhoseOperationsDiffer) {
  if (!GetParam().has_op) return;
  const auto text = mismatch(
      [&](Communicator& all, int rank) { return call(all, 10, DRUN_FLOAT32, rank == 0 ? DRUN_MAX : DRUN_MIN); });
  EXPECT_TRUE(contains(text, "(max)") && contains(text, "(min)")) << text;
}

// Holds even if both ranks wait for each other until their deadline.
TEST_P(Every, NamesBothWhoseRootsDiffer) {
  if (!GetParam().has_root) return;
  const auto text =
      mismatch([&](Communicator& all, int rank) { return call(all, 10, DRUN_FLOAT32, DRUN_SUM, rank); }, 500ms);
  EXPECT_TRUE(contains(text, "rank 0 on node0 called") && contains(text, "rank 1 on node1 called")) << text;
}

TEST_P(Every, NamesBothWhenOneCallsAnother) {
  const auto text = mismatch([&](Communicator& all, int rank) { return rank == 0 ? call(all, 10) : all.barrier(); });
  EXPECT_TRUE(contains(text, "barrier #1") && contains(text, GetParam().name + std::string(" #1"))) << text;
}

TEST_P(Every, NamesTheRankThatNeverCame) {
  FakeJob job(6, 500ms);
  Events over;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 3) return over.wait_for(5);  // not a neighbor of rank 0, the root
    auto done = call(*all, kMax, DRUN_FLOAT64);
    if (done) done = all->barrier();  // for ranks that have done their part
    over.add();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
    EXPECT_EQ(done.error().rank, 3) << done.error().text;
  });
}

TEST_P(Every, EndsAtOnceWhenARankIsKilled) {
  FakeJob job(6, 60s);
  Events inside;
  const auto began = Clock::now();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 3) {
      inside.wait_for(5);
      job.abort({3, "node3", 812, "killed by signal 9"});
      return;
    }
    inside.add();
    auto done = call(*all, kMax, DRUN_FLOAT64);
    if (done) done = all->barrier();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER);
    EXPECT_EQ(done.error().rank, 3);
    EXPECT_TRUE(contains(done.error().text, "rank 3 on node3 (pid 812): killed by signal 9")) << done.error().text;
  });
  EXPECT_LT(Clock::now() - began, 20s);
}

TEST_P(Every, NamesTheRankThatWentAway) {
  FakeJob job(4, 60s);  // every two ranks are connected
  const auto began = Clock::now();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 3) return;
    auto done = call(*all, kMax, DRUN_FLOAT64);
    if (done) done = all->barrier();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER) << done.error().text;
    EXPECT_EQ(done.error().rank, 3) << done.error().text;
  });
  EXPECT_LT(Clock::now() - began, 20s);
}

INSTANTIATE_TEST_SUITE_P(Collective, Every, ::testing::ValuesIn(kCalls),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Blocks, OfAnAlltoallvThatDifferAreNamed) {
  const auto text = mismatch([](Communicator& all, int rank) {
    std::vector<float> send(8), recv(8);
    const std::size_t sent[] = {2, 2};
    // Rank 0 sends 2 elements to rank 1, which expects 3.
    const std::size_t received[] = {rank == 0 ? 2u : 3u, 2};
    return all.alltoallv(send.data(), sent, nullptr, recv.data(), received, nullptr, DRUN_FLOAT32);
  });
  EXPECT_TRUE(contains(text, "alltoallv #1: rank 0 on node0 sends 2 f32 to rank 1 on node1, which expects 3")) << text;
}

TEST(SendAndRecv, AreNumberedByPairAndDirection) {
  FakeJob job(3);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    int value = rank;
    // Ranks 0 and 1 have made two transfers and a collective, rank 2 only the collective.
    for (int i = 0; i < 2 && rank < 2; ++i) {
      ASSERT_TRUE(rank == 0 ? all->send(&value, 1, DRUN_INT32, 1) : all->recv(&value, 1, DRUN_INT32, 0));
      EXPECT_EQ(value, 0);
    }
    ASSERT_TRUE(all->barrier());
    value = rank;
    if (rank == 1) {
      ASSERT_TRUE(all->send(&value, 1, DRUN_INT32, 2));
    } else if (rank == 2) {
      ASSERT_TRUE(all->recv(&value, 1, DRUN_INT32, 1));
      EXPECT_EQ(value, 1);
    }
    ASSERT_TRUE(all->barrier());
  });
}

TEST(SendAndRecv, ThatMismatchNameBoth) {
  const auto text = mismatch([](Communicator& all, int rank) {
    float data[12] = {};
    return rank == 0 ? all.send(data, 10, DRUN_FLOAT32, 1) : all.recv(data, 12, DRUN_FLOAT32, 0);
  });
  EXPECT_TRUE(contains(text, "called send #1 of 10 f32 to rank 1")) << text;
  EXPECT_TRUE(contains(text, "called recv #1 of 12 f32 from rank 0")) << text;
}

TEST(SendAndRecv, AcrossACollectiveMismatch) {
  const auto text = mismatch([](Communicator& all, int rank) {
    float data = 0;
    return rank == 0 ? all.send(&data, 1, DRUN_FLOAT32, 1) : all.barrier();
  });
  EXPECT_TRUE(contains(text, "send #1 of 1 f32 to rank 1") && contains(text, "barrier #1")) << text;
}

TEST(SendAndRecv, TimeOutOnThePeer) {
  FakeJob job(6, 300ms);
  Events failed;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank != 0) return failed.wait_for(1);
    float value = 0;
    const auto done = all->recv(&value, 1, DRUN_FLOAT32, 3);
    failed.add();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT);
    EXPECT_EQ(done.error().rank, 3);
    EXPECT_EQ(done.error().text, "recv #1 timed out after 300 ms waiting for rank 3 on node3 (no connection)");
  });
}

// Returns the errors of ranks 0 and 1 of three, after both have called. Rank 2 does nothing until both have failed.
std::vector<std::string> told_while_2_sleeps(
    std::chrono::milliseconds timeout,
    const std::function<Status(Communicator&, int rank, const std::function<void()>& meet)>& body) {
  FakeJob job(3, timeout);
  Events failed, ready;
  std::vector<std::string> told(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 2) return failed.wait_for(2);
    const auto done = body(*all, rank, [&] {
      ready.add();
      ready.wait_for(2);
    });
    failed.add();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
    EXPECT_EQ(done.error().rank, 2) << done.error().text;
    told[static_cast<std::size_t>(rank)] = done.error().text;
  });
  return told;
}

TEST(SendAndRecv, NameTheRankForWhichThePeerWaits) {
  const auto told = told_while_2_sleeps(500ms, [](Communicator& all, int rank, const auto& meet) {
    float value = 0;
    meet();
    return all.recv(&value, 1, DRUN_FLOAT32, rank + 1);
  });
  EXPECT_EQ(told[0],
            "recv #1 timed out after 500 ms waiting for rank 2 on node2: "
            "rank 1 waits for rank 2 in recv #1 of 1 f32 from rank 2");
  EXPECT_TRUE(contains(told[1], "recv #1 timed out after 500 ms waiting for rank 2 on node2")) << told[1];
  EXPECT_FALSE(contains(told[1], "rank 1 waits")) << told[1];
}

// The peer's own deadline is far away, but after one second the peer publishes for which rank it waits.
TEST(SendAndRecv, NameTheRankForWhichThePeerStillWaits) {
  FakeJob job(3, 60s);
  Events failed;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 2) return failed.wait_for(1);
    float value = 0;
    CallOptions options;
    if (rank == 0) options.timeout = 1500ms;
    const auto done = all->recv(&value, 1, DRUN_FLOAT32, rank + 1, options);
    failed.add();
    ASSERT_FALSE(done);
    if (rank == 0) {
      EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
      EXPECT_TRUE(contains(done.error().text, "rank 1 waits for rank 2 in recv #1")) << done.error().text;
    }
    EXPECT_EQ(done.error().rank, 2) << done.error().text;
  });
}

// If two ranks both receive first, neither alone is at fault: each error says what the other rank does.
TEST(SendAndRecv, InACircleTellIt) {
  FakeJob job(2, 500ms);
  Events ready;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    float value = 0;
    ready.add();
    ready.wait_for(2);
    const auto done = all->recv(&value, 1, DRUN_FLOAT32, 1 - rank);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT);
    EXPECT_EQ(done.error().rank, 1 - rank);
    const std::string own = std::to_string(rank), other = std::to_string(1 - rank);
    EXPECT_EQ(done.error().text, "recv #1 timed out after 500 ms waiting for rank " + other + " on node" + other +
                                     ": rank " + other + " waits for rank " + own + " in recv #1 of 1 f32 from rank " +
                                     own);
  });
}

TEST(SendAndRecv, OfAGroupAreFollowedAll) {
  const auto told = told_while_2_sleeps(500ms, [](Communicator& all, int rank, const auto& meet) {
    float in = 0, out = 0;
    meet();
    if (rank == 1) return all.recv(&in, 1, DRUN_FLOAT32, 0);  // rank 0 never sends this
    CallOptions options;
    std::vector<Communicator::TransferCall> calls;
    calls.push_back({OpKind::kRecv, &in, 1, DRUN_FLOAT32, 1, options});
    calls.push_back({OpKind::kRecv, &out, 1, DRUN_FLOAT32, 2, options});
    return all.transfer(calls);
  });
  EXPECT_TRUE(contains(told[0], "waiting for rank 2 on node2")) << told[0];
  EXPECT_TRUE(contains(told[1], "waiting for rank 2 on node2: rank 0 waits for rank 2 in a group of sends")) << told[1];
}

TEST(Collectives, FollowAReceive) {
  const auto told = told_while_2_sleeps(500ms, [](Communicator& all, int rank, const auto& meet) {
    float value = 0;
    meet();
    return rank == 0 ? all.broadcast(&value, 1, DRUN_FLOAT32, 1) : all.recv(&value, 1, DRUN_FLOAT32, 2);
  });
  EXPECT_EQ(told[0],
            "broadcast #1 timed out after 500 ms waiting for rank 2 on node2: "
            "rank 1 waits for rank 2 in recv #1 of 1 f32 from rank 2");
}

TEST(Collectives, NameTheRankThatReceivesFromThoseInThem) {
  FakeJob job(2, 500ms);
  Events ready;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    float value = 0;
    ready.add();
    ready.wait_for(2);
    const auto done = rank == 0 ? all->broadcast(&value, 1, DRUN_FLOAT32, 1) : all->recv(&value, 1, DRUN_FLOAT32, 0);
    ASSERT_FALSE(done);
    EXPECT_TRUE(contains(done.error().text, rank == 0 ? ": rank 1 waits for rank 0 in recv #1 of"
                                                      : ": rank 0 waits for rank 1 in broadcast #1 of"))
        << done.error().text;
  });
}

}  // namespace
}  // namespace drun::runtime
