// Communicators that are parts of the job.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using testing::join;
using namespace std::chrono_literals;

// Makes every call of a communicator, with results that only its members can have produced.
void use_all(Communicator& comm, const std::vector<int>& ranks) {
  const auto n = static_cast<std::int64_t>(ranks.size());
  const int own = comm.rank();
  ASSERT_EQ(comm.size(), n);
  const std::int64_t mine = ranks[static_cast<std::size_t>(own)];
  const std::int64_t sum_of_all = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0});
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    std::vector<std::int64_t> sums(count, mine);
    const auto done = comm.allreduce(sums.data(), sums.data(), count, DRUN_INT64, DRUN_SUM);
    ASSERT_TRUE(done) << done.error().text;
    ASSERT_EQ(sums, std::vector<std::int64_t>(count, sum_of_all));
    std::vector<std::int64_t> averages(count, mine);
    ASSERT_TRUE(comm.allreduce(averages.data(), averages.data(), count, DRUN_INT64, DRUN_AVG));
    ASSERT_EQ(averages.back(), sum_of_all / n);
    for (int root = 0; root < comm.size(); ++root) {
      std::vector<std::int64_t> data(count, mine);
      ASSERT_TRUE(comm.broadcast(data.data(), count, DRUN_INT64, root));
      ASSERT_EQ(data, std::vector<std::int64_t>(count, ranks[static_cast<std::size_t>(root)]));
      std::vector<std::int64_t> reduced(count, mine);
      ASSERT_TRUE(comm.reduce(reduced.data(), reduced.data(), count, DRUN_INT64, DRUN_AVG, root));
      if (own != root) continue;
      ASSERT_EQ(reduced, std::vector<std::int64_t>(count, sum_of_all / n));
    }
  }
  std::vector<std::int64_t> gathered(ranks.size());
  ASSERT_TRUE(comm.allgather(&mine, gathered.data(), 1, DRUN_INT64));
  ASSERT_EQ(gathered, std::vector<std::int64_t>(ranks.begin(), ranks.end()));
  std::vector<std::int64_t> to(ranks.size(), mine), from(ranks.size());
  ASSERT_TRUE(comm.alltoall(to.data(), from.data(), 1, DRUN_INT64));
  ASSERT_EQ(from, gathered);
  if (comm.size() > 1 && own < 2) {
    std::int64_t theirs = -1;
    ASSERT_TRUE(own == 0 ? comm.send(&mine, 1, DRUN_INT64, 1) : comm.recv(&theirs, 1, DRUN_INT64, 0));
    EXPECT_EQ(theirs, own == 1 ? ranks[0] : -1);
  }
  ASSERT_TRUE(comm.barrier());
}

std::vector<int> all_of(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class Split : public ::testing::TestWithParam<int> {};

TEST_P(Split, ByParityInReverseOrderAndBack) {
  FakeJob job(GetParam());
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<int> mates;
    for (int other = job.size() - 1; other >= 0; --other) {
      if (other % 2 == rank % 2) mates.push_back(other);
    }
    for (int round = 0; round < 2; ++round) {  // the parts of the first round are gone in the second
      auto part = all->split(rank % 2, -rank);
      ASSERT_TRUE(part) << part.error().text;
      ASSERT_TRUE(*part);
      use_all(**part, mates);
      use_all(*all, all_of(job.size()));
      use_all(**part, mates);
      auto alone = (*part)->split(rank, 0);
      ASSERT_TRUE(alone) << alone.error().text;
      use_all(**alone, {rank});
    }
  });
}

TEST_P(Split, WhoDoesNotWantToBeInOneIsInNone) {
  FakeJob job(GetParam());
  if (job.size() == 1) return;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    auto part = all->split(rank == 0 ? -1 : 3, 0);
    ASSERT_TRUE(part) << part.error().text;
    ASSERT_EQ(*part == nullptr, rank == 0);
    auto others = all_of(job.size());
    others.erase(others.begin());
    if (rank > 0) use_all(**part, others);
    use_all(*all, all_of(job.size()));
  });
}

TEST_P(Split, LocalAndCrossNeedNoWord) {
  FakeJob job(GetParam());
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < job.size(); ++rank) host_of_rank.push_back(rank < 3 ? 0 : 1);
  job.place_on_hosts(host_of_rank);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<int> local, cross;
    for (int other = 0; other < job.size(); ++other) {
      if ((other < 3) == (rank < 3)) local.push_back(other);
      if (other % 3 == rank % 3 && (other < 3 ? other : other - 3) == (rank < 3 ? rank : rank - 3))
        cross.push_back(other);
    }
    auto here = all->among(all->local_group(), 0ms, "test");
    ASSERT_TRUE(here) << here.error().text;
    auto there = all->among(all->cross_group(), 0ms, "test");
    ASSERT_TRUE(there) << there.error().text;
    use_all(**here, local);
    use_all(**there, cross);
    use_all(*all, all_of(job.size()));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Split, ::testing::Values(1, 2, 3, 4, 5, 6),
                         [](const auto& param) { return "of" + std::to_string(param.param); });

TEST(SplitFaults, ErrorsNameTheCommunicatorAndTheJobsRanks) {
  FakeJob job(4, 2s);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    auto part = all->split(rank / 2, 0);
    ASSERT_TRUE(part) << part.error().text;
    if (rank == 3) {  // never comes
      std::this_thread::sleep_for(5s);
      return;
    }
    std::int32_t one = 1;
    const auto done = (*part)->allreduce(&one, &one, 1, DRUN_INT32, DRUN_SUM);
    if (rank < 2) {
      EXPECT_TRUE(done) << done.error().text;
      return;
    }
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().rank, 3);
    EXPECT_NE(done.error().text.find("allreduce[comm 16] #1 timed out after 2 s waiting for rank 3 on node"),
              std::string::npos)
        << done.error().text;
    const auto later = all->barrier();
    ASSERT_FALSE(later);
    EXPECT_NE(later.error().text.find("an earlier collective failed"), std::string::npos);
  });
}

TEST(Transfers, AllAtOnceWaitForNobody) {
  FakeJob job(3);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    // All ranks send first, more than any buffer holds, and twice to each peer: the two must keep their order.
    const std::size_t count = 3'000'000;
    std::vector<std::vector<std::int32_t>> out, in;
    for (int i = 0; i < 4; ++i) {
      out.emplace_back(count, rank * 10 + i);
      in.emplace_back(count, -1);
    }
    std::vector<Communicator::TransferCall> calls;
    for (int round = 0; round < 2; ++round) {
      for (int step = 1; step <= 2; ++step) {
        const auto i = static_cast<std::size_t>(round * 2 + step - 1);
        calls.push_back({OpKind::kSend, out[i].data(), count, DRUN_INT32, (rank + step) % 3, {}});
      }
    }
    for (int round = 0; round < 2; ++round) {
      for (int step = 1; step <= 2; ++step) {
        const auto i = static_cast<std::size_t>(round * 2 + step - 1);
        calls.push_back({OpKind::kRecv, in[i].data(), count, DRUN_INT32, (rank + 3 - step) % 3, {}});
      }
    }
    const auto done = all->transfer(calls);
    ASSERT_TRUE(done) << done.error().text;
    for (int round = 0; round < 2; ++round) {
      for (int step = 1; step <= 2; ++step) {
        const int i = round * 2 + step - 1;
        ASSERT_EQ(in[static_cast<std::size_t>(i)], std::vector<std::int32_t>(count, (rank + 3 - step) % 3 * 10 + i));
      }
    }
  });
}

// poll() fails if it gets more entries than the process may have open files. The files of this process are open
// already.
TEST(Transfers, InBothDirectionsWithEveryRankNeedOneOpenFilePerRank) {
  constexpr int kSize = 8;
  constexpr std::size_t kCount = 3'000'000;  // more than the buffers hold
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  FakeJob job(kSize, 60s);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<int> peers = {0};
    if (rank == 0) {
      peers.resize(kSize - 1);
      std::iota(peers.begin(), peers.end(), 1);
    }
    std::vector<std::int32_t> out(kCount, rank);
    std::vector<std::vector<std::int32_t>> in(peers.size(), std::vector<std::int32_t>(kCount));
    const auto exchange = [&](std::size_t count) {
      std::vector<Communicator::TransferCall> calls;
      for (std::size_t i = 0; i < peers.size(); ++i) {
        calls.push_back({OpKind::kSend, out.data(), count, DRUN_INT32, peers[i], {}});
        calls.push_back({OpKind::kRecv, in[i].data(), count, DRUN_INT32, peers[i], {}});
      }
      return all->transfer(calls);
    };
    ASSERT_TRUE(exchange(1));
    if (rank == 0) {
      const rlimit few{kSize + 6, before.rlim_max};
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    } else {
      std::this_thread::sleep_for(300ms);  // so that rank 0 waits for all of them in both directions
    }
    const auto done = exchange(kCount);
    EXPECT_TRUE(done) << done.error().text;
    for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(in[i].back(), peers[i]);
  });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Transfers, OfOnePairDoNotWaitForThoseOfAnother) {
  FakeJob job(3, 10s);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const std::size_t count = 2'000'000;
    std::vector<std::int32_t> out(count, rank), in(count), more(count);
    Status done;
    if (rank == 0) {
      done = all->transfer({{OpKind::kSend, out.data(), count, DRUN_INT32, 1, {}},
                            {OpKind::kSend, out.data(), count, DRUN_INT32, 1, {}},
                            {OpKind::kRecv, in.data(), count, DRUN_INT32, 2, {}}});
    } else if (rank == 1) {
      done = all->transfer({{OpKind::kRecv, in.data(), count, DRUN_INT32, 0, {}},
                            {OpKind::kRecv, more.data(), count, DRUN_INT32, 0, {}}});
      ASSERT_TRUE(done) << done.error().text;
      done = all->send(out.data(), count, DRUN_INT32, 2);
    } else {
      done = all->recv(in.data(), count, DRUN_INT32, 1);
      ASSERT_TRUE(done) << done.error().text;
      done = all->send(out.data(), count, DRUN_INT32, 0);
    }
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(in, std::vector<std::int32_t>(count, (rank + 2) % 3));
  });
}

TEST(SplitFaults, ARankThatHasLeftIsNamedAlsoWithoutAConnection) {
  FakeJob job(8, 60s);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    auto part = all->split(rank % 3 == 0 ? 1 : -1, 0);  // ranks 0, 3 and 6, some of which are not neighbors
    ASSERT_TRUE(part) << part.error().text;
    if (rank == 3) {
      all->leave();
      return;
    }
    if (rank % 3 != 0) return;
    const auto began = Clock::now();
    const auto done = (*part)->barrier();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().rank, 3) << done.error().text;
    EXPECT_LT(Clock::now() - began, 20s);
  });
}

TEST(SplitFaults, MemoryThatOneHostLacksIsEverybodysError) {
  FakeJob job(4);
  job.place_on_hosts({0, 0, 1, 1});
  job.run([&](int rank) {
    JobContext job_context = job.job_context(rank);
    if (rank == 2) {
      job_context.memory.reset(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      ASSERT_EQ(::fcntl(job_context.memory.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
    }
    const auto all = Communicator::create(std::move(job_context));
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().text.find("host node1: no shared memory"), std::string::npos) << all.error().text;
  });
}

TEST(GroupedAllreduce, FusedOnesAreTheSameAsEachByItself) {
  FakeJob job(3);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const std::vector<std::size_t> counts = {1, 0, 1000, 3'000'000, 7, 500'000, 499'999, 2};
    std::vector<std::vector<float>> given, together, each;
    std::vector<Communicator::AllreduceCall> calls;
    for (const std::size_t count : counts) {
      given.emplace_back(count, static_cast<float>(rank) + static_cast<float>(count % 10));
      together.emplace_back(count);
      each.emplace_back(count);
    }
    for (std::size_t i = 0; i < counts.size(); ++i) calls.push_back({given[i].data(), together[i].data(), counts[i]});
    const auto done = all->allreduce_all(calls, DRUN_FLOAT32, DRUN_AVG);
    ASSERT_TRUE(done) << done.error().text;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      ASSERT_TRUE(all->allreduce(given[i].data(), each[i].data(), counts[i], DRUN_FLOAT32, DRUN_AVG));
      ASSERT_TRUE(counts[i] == 0 || std::memcmp(together[i].data(), each[i].data(), counts[i] * sizeof(float)) == 0)
          << i;
    }
  });
}

TEST(Hosts, AreAlikeIfEachHasAsManyRanks) {
  const struct {
    std::vector<int> host_of_rank;
    bool alike;
  } rows[] = {
      {{0}, true},          {{0, 0, 0}, true},  {{0, 1, 2}, true},           {{0, 0, 1, 1}, true},
      {{0, 1, 0, 1}, true}, {{0, 0, 1}, false}, {{0, 0, 1, 2, 2, 2}, false},
  };
  for (const auto& row : rows) EXPECT_EQ(has_as_many_each(row.host_of_rank), row.alike) << row.host_of_rank.size();
}

}  // namespace
}  // namespace drun::runtime
