// Collectives in shared memory. Ranks are threads that each map the same memfd, or share one mapping where
// ThreadSanitizer checks the protocol itself. faults_test.cpp also runs a second time over shared memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/src/backend/shm/counter.h"
#include "runtime/src/backend/shm/segment.h"
#include "runtime/src/backend/shm/shm_backend.h"
#include "tests/contains.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using namespace std::chrono_literals;

using drun::testing::contains;

std::unique_ptr<Communicator> join(FakeJob& job, int rank) {
  auto all = Communicator::create(job.job_context(rank));
  EXPECT_TRUE(all) << all.error().text;
  return all ? std::move(*all) : nullptr;
}

// A network that fails every call: shared memory must work without it.
class NoNetwork final : public Backend {
 public:
  Status allreduce(const Operation&, const Span&) override { return none(); }
  Status reduce(const Operation&, const Span&) override { return none(); }
  Status reduce_scatter(const Operation&, const Span&) override { return none(); }
  Status broadcast(const Operation&, void*, std::size_t) override { return none(); }
  Status allgather(const Operation&, void*, const std::vector<Block>&) override { return none(); }
  Status gather(const Operation&, const void*, void*) override { return none(); }
  Status scatter(const Operation&, const void*, void*) override { return none(); }
  Status alltoall(const Operation&, const void*, const std::vector<Block>&, void*, const std::vector<Block>&) override {
    return none();
  }
  Status transfer(const std::vector<Transfer>&) override { return none(); }
  Status adasum(const Operation&, const Span&) override { return none(); }
  Status barrier(const Operation&) override { return none(); }
  bool has_closed(int) const override { return false; }
  void close() override {}

 private:
  static Status none() { return failure(DRUN_ERROR_INTERNAL, "network"); }
};

Span span_of(std::vector<std::int32_t>& data) {
  return {reinterpret_cast<char*>(data.data()), data.size(), DRUN_INT32};
}

std::shared_ptr<Segment> make_segment(int n_ranks) {
  auto arena = Arena::create(Fd(::memfd_create("test", MFD_CLOEXEC)));
  EXPECT_TRUE(arena) << arena.error().message();
  if (!arena) return nullptr;
  auto segment = Segment::create(std::move(*arena), n_ranks);
  EXPECT_TRUE(segment) << segment.error().message();
  return segment ? *segment : nullptr;
}

Operation call(OpKind kind, std::uint64_t seq, std::size_t count, drun_dtype dtype = DRUN_INT32,
               std::chrono::milliseconds timeout = 30s) {
  Operation operation;
  operation.kind = kind;
  operation.dtype = dtype;
  operation.seq = seq;
  operation.count = count;
  operation.timeout = timeout;
  operation.clock.begin_at(Clock::now());
  return operation;
}

std::int32_t value(int rank, std::size_t i, std::uint64_t seq) {
  return static_cast<std::int32_t>(i * 31 + static_cast<std::size_t>(rank) * 1009 + seq * 7);
}

// Returns value(rank, i, seq) for each i below `count`.
std::vector<std::int32_t> values(int rank, std::size_t count, std::uint64_t seq) {
  std::vector<std::int32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = value(rank, i, seq);
  return result;
}

// Returns the sums of all ranks' values(). A value is linear in its rank, so the loop does not depend on `size`: under
// ThreadSanitizer each access costs as much as many additions.
std::vector<std::int32_t> sums_of_values(int size, std::size_t count, std::uint64_t seq) {
  auto result = values(0, count, seq);
  const std::int32_t of_ranks = 1009 * (size * (size - 1) / 2);
  for (auto& v : result) v = v * size + of_ranks;
  return result;
}

class SharedMemory : public ::testing::TestWithParam<int> {};

// Calls of all kinds, with sizes around every limit, follow each other without a pause: data that one leaves in the
// slots must not reach the next.
TEST_P(SharedMemory, CallsOfAnyKindAndSizeFollowEachOther) {
  const int size = GetParam();
  FakeJob job(size);
  const auto segment = make_segment(size);
  ASSERT_TRUE(segment);
  const std::size_t slot = Segment::kSlotBytes / sizeof(std::int32_t);
  const std::vector<std::size_t> counts = {0,    1,    2,    3,        7,        12,   13,       28,   29,           63,
                                           2047, 2048, 2049, slot - 1, slot + 1, slot, 2 * slot, 2049, 3 * slot + 5, 1};
  job.run([&](int rank) {
    const JobContext job_context = job.job_context(rank);
    auto backend = make_shm_backend(job_context, Group::all(job_context), segment, std::make_unique<NoNetwork>());
    std::uint64_t seq = 0;
    for (int round = 0; round < 2; ++round) {
      for (const std::size_t count : counts) {
        ++seq;
        auto data = values(rank, count, seq);
        auto done = backend->allreduce(call(OpKind::kAllreduce, seq, count), span_of(data));
        ASSERT_TRUE(done) << done.error().text;
        ASSERT_EQ(data, sums_of_values(size, count, seq)) << "allreduce of " << count;

        const int root =
            static_cast<int>((seq / 6 + static_cast<std::uint64_t>(round)) % static_cast<std::uint64_t>(size));
        ++seq;
        const auto of_root = values(root, count, seq);
        data = rank == root ? of_root : std::vector<std::int32_t>(count, -1);
        auto broadcast = call(OpKind::kBroadcast, seq, count);
        broadcast.root = root;
        ASSERT_TRUE(backend->broadcast(broadcast, data.data(), count * sizeof(std::int32_t)));
        ASSERT_EQ(data, of_root) << "broadcast of " << count;

        // A reduce: only the root gets the result.
        ++seq;
        data = values(rank, count, seq);
        auto reduce = call(OpKind::kReduce, seq, count);
        reduce.root = root;
        ASSERT_TRUE(backend->reduce(reduce, span_of(data)));
        if (rank == root) {
          ASSERT_EQ(data, sums_of_values(size, count, seq)) << "reduce of " << count;
        }

        // A block per rank, of very different sizes.
        ++seq;
        std::vector<Block> parts;
        std::size_t begin = 0;
        for (int r = 0; r < size; ++r) {
          const std::size_t n = r + 1 < size ? (count - begin) / (r % 2 == 0 ? 2 : 5) : count - begin;
          parts.push_back({begin * sizeof(std::int32_t), n * sizeof(std::int32_t)});
          begin += n;
        }
        data = values(rank, count, seq);
        ASSERT_TRUE(backend->reduce_to_blocks(call(OpKind::kReduceScatter, seq, count), span_of(data), parts));
        const Block own = parts[static_cast<std::size_t>(rank)];
        const auto expected = sums_of_values(size, count, seq);
        for (std::size_t i = own.offset / sizeof(std::int32_t); i < (own.offset + own.n_bytes) / sizeof(std::int32_t);
             ++i) {
          ASSERT_EQ(data[i], expected[i]) << "block of " << count;
        }

        ++seq;
        std::vector<std::int32_t> blocks, all;
        std::vector<Block> places;
        const std::size_t n_bytes = count * sizeof(std::int32_t);
        for (int r = 0; r < size; ++r) {
          const auto of_rank = values(r, count, seq);
          all.insert(all.end(), of_rank.begin(), of_rank.end());
          blocks.resize(all.size(), -1);
          if (r == rank) std::copy(of_rank.begin(), of_rank.end(), blocks.end() - static_cast<std::ptrdiff_t>(count));
          places.push_back({static_cast<std::size_t>(r) * n_bytes, n_bytes});
        }
        ASSERT_TRUE(backend->allgather(call(OpKind::kAllgather, seq, count), blocks.data(), places));
        ASSERT_EQ(blocks, all) << "allgather of " << count;
        ++seq;
        ASSERT_TRUE(backend->barrier(call(OpKind::kBarrier, seq, 0, DRUN_INT8)));
      }
    }
  });
}

// Ranks are late in turn, so that each overtakes every other one by as much as the protocol allows.
TEST_P(SharedMemory, NobodyOvertakesByMoreThanTheSlotsHold) {
  const int size = GetParam();
  FakeJob job(size);
  const auto segment = make_segment(size);
  ASSERT_TRUE(segment);
  job.run([&](int rank) {
    const JobContext job_context = job.job_context(rank);
    auto backend = make_shm_backend(job_context, Group::all(job_context), segment, std::make_unique<NoNetwork>());
    const std::size_t slot = Segment::kSlotBytes / sizeof(std::int32_t);
    for (std::uint64_t seq = 1; seq <= 60; ++seq) {
      const std::size_t count = seq % 3 == 0 ? 2 * slot + seq : seq;
      auto data = values(rank, count, seq);
      if (seq % static_cast<std::uint64_t>(size) == static_cast<std::uint64_t>(rank)) ::usleep(2000);
      ASSERT_TRUE(backend->allreduce(call(OpKind::kAllreduce, seq, count), span_of(data)));
      ASSERT_EQ(data, sums_of_values(size, count, seq)) << seq;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, SharedMemory, ::testing::Values(2, 3, 4, 9),
                         [](const auto& param) { return "of" + std::to_string(param.param); });

// The counter that only large reductions move is behind by half of its range.
TEST(SharedMemorySteps, AfterBillionsOfSmallCallsALargeOneIsStillRight) {
  FakeJob job(3);
  const auto segment = make_segment(3);
  ASSERT_TRUE(segment);
  for (const std::uint32_t steps : {0x80000001u, 0xc0000000u, 0xfffffffeu}) {
    for (int rank = 0; rank < 3; ++rank) {
      auto& control = segment->control(rank);
      for (const std::uint32_t step : {steps - 1, steps})
        control.arrival(step).step.move_to(step, control.sleepers_of(step));
    }
    job.run([&](int rank) {
      const JobContext job_context = job.job_context(rank);
      auto backend = make_shm_backend(job_context, Group::all(job_context), segment, std::make_unique<NoNetwork>());
      for (std::uint64_t seq = 1; seq <= 3; ++seq) {
        auto data = values(rank, 300'000, seq);
        ASSERT_TRUE(backend->allreduce(call(OpKind::kAllreduce, seq, data.size()), span_of(data)));
        ASSERT_EQ(data, sums_of_values(3, data.size(), seq)) << seq;
      }
    });
  }
}

TEST(SharedMemorySetUp, EveryRankMapsTheSame) {
  FakeJob job(5);
  job.share_memory();
  job.run([&](int rank) {
    for (int epoch = 1; epoch <= 2; ++epoch) {  // as in a second drun_init: nothing of the first is left
      auto all = Communicator::create(job.job_context(rank, epoch));
      ASSERT_TRUE(all) << all.error().text;
      std::vector<double> data(300'000, (rank + 1.0) * epoch);
      ASSERT_TRUE((*all)->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT64, DRUN_SUM));
      for (const double v : data) ASSERT_EQ(v, 15.0 * epoch);
    }
  });
}

TEST(SharedMemorySetUp, WithoutMemoryForOneRankTheNetworkServesAll) {
  FakeJob job(3);
  job.share_memory();
  job.run([&](int rank) {
    JobContext job_context = job.job_context(rank);
    if (rank == 1) job_context.memory.reset();
    auto all = Communicator::create(std::move(job_context));
    ASSERT_TRUE(all) << all.error().text;
    std::int64_t sum = rank;
    ASSERT_TRUE((*all)->allreduce(&sum, &sum, 1, DRUN_INT64, DRUN_SUM));
    EXPECT_EQ(sum, 3);
  });
}

TEST(SharedMemorySetUp, MemoryThatCannotBeHadIsAnErrorOnEveryRank) {
  FakeJob job(3);
  job.share_memory();
  job.run([&](int rank) {
    JobContext job_context = job.job_context(rank);
    if (rank == 0) {  // its memory can't grow
      job_context.memory.reset(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      ASSERT_EQ(::fcntl(job_context.memory.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
    }
    const auto all = Communicator::create(std::move(job_context));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().status, DRUN_ERROR_SYSTEM);
    EXPECT_TRUE(contains(all.error().text, ": no shared memory: posix_fallocate: ")) << all.error().text;
  });
}

TEST(SharedMemorySetUp, ARegionThatCannotBeHadIsAnErrorWithItsSize) {
  const Fd memory(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  auto arena = Arena::create(Fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(arena) << arena.error().message();
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  const auto segment = Segment::create(*arena, 3);
  ASSERT_FALSE(segment);
  EXPECT_TRUE(contains(segment.error().message(), "no shared memory of 7 MiB for 3 ranks: posix_fallocate: "))
      << segment.error().message();
}

TEST(SharedMemorySetUp, RegionsBeginWhereEveryKernelCanMapThem) {
  auto arena = Arena::create(Fd(::memfd_create("test", MFD_CLOEXEC)));
  ASSERT_TRUE(arena) << arena.error().message();
  for (const std::size_t n_bytes : {1u, 4097u, 70000u}) {
    const auto offset = (*arena)->reserve(n_bytes);
    ASSERT_TRUE(offset) << offset.error().message();
    EXPECT_EQ(*offset % 65536, 0u) << "the largest pages";
  }
}

// As the agent makes it: sealed, so that no rank can cut off what the others have mapped.
TEST(SharedMemorySetUp, MemoryThatCannotShrinkServesOneJobAfterAnother) {
  const Fd memory(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
  const auto claimed = [&] {
    struct stat file {};
    EXPECT_EQ(::fstat(memory.get(), &file), 0);
    return static_cast<std::size_t>(file.st_blocks) * 512;
  };
  std::size_t with_region = 0;
  std::shared_ptr<Segment> left;  // by a rank that was killed
  for (int job = 0; job < 3; ++job) {
    auto arena = Arena::create(Fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)));
    ASSERT_TRUE(arena) << arena.error().message();
    auto segment = Segment::create(*arena, 2);
    ASSERT_TRUE(segment) << segment.error().message();
    EXPECT_EQ((*segment)->given(0, 1)[0], 0) << "empty in job " << job;
    std::memset((*segment)->given(0, 1), 'x', Segment::kSlotBytes);
    if (job == 0) with_region = claimed();
    EXPECT_EQ(claimed(), with_region) << "nothing of the jobs before, in job " << job;
    EXPECT_NE(::ftruncate(memory.get(), 0), 0);
    left = std::move(*segment);
  }
}

TEST(SharedMemorySetUp, TheLastOfARegionsRanksGivesItBack) {
  const Fd memory(::memfd_create("test", MFD_CLOEXEC));
  const auto claimed = [&] {
    struct stat file {};
    EXPECT_EQ(::fstat(memory.get(), &file), 0);
    return static_cast<std::size_t>(file.st_blocks) * 512;
  };
  auto arena = Arena::create(Fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(arena) << arena.error().message();
  const std::size_t before = claimed();
  auto first = Segment::create(*arena, 2);
  ASSERT_TRUE(first) << first.error().message();
  auto second = Segment::map(*arena, (*first)->offset(), 2);
  ASSERT_TRUE(second) << second.error().message();
  const std::size_t with_region = claimed();
  EXPECT_GE(with_region, before + 8 * Segment::kSlotBytes);
  first->reset();
  EXPECT_EQ(claimed(), with_region);
  second->reset();
  EXPECT_EQ(claimed(), before);
}

TEST(SharedMemorySetUp, MemoryOfAnotherLibdrunIsRefused) {
  const Fd memory(::memfd_create("test", MFD_CLOEXEC));
  const auto empty = Arena::join(Fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_FALSE(empty);
  ASSERT_EQ(::ftruncate(memory.get(), 1 << 20), 0);
  const auto foreign = Arena::join(Fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_FALSE(foreign);
  EXPECT_TRUE(contains(foreign.error().message(), "not all ranks have the same")) << foreign.error().message();
}

TEST(SharedMemoryFaults, MismatchNamesBothSides) {
  FakeJob job(4);
  job.share_memory();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<float> data(100'000);
    ASSERT_TRUE(all->barrier());
    const auto done = rank == 2 ? all->broadcast(data.data(), 10, DRUN_FLOAT32, 1)
                                : all->allreduce(data.data(), data.data(), 12, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH) << done.error().text;
    EXPECT_TRUE(contains(done.error().text, "allreduce #2 of 12 f32 (sum)")) << done.error().text;
    EXPECT_TRUE(contains(done.error().text, "rank 2 on node2 called broadcast #2 of 10 f32 from rank 1") ||
                contains(done.error().text, "while rank 2 on node2 called broadcast #2 of 10 f32 from rank 1"))
        << done.error().text;
    const auto later = all->barrier();
    ASSERT_FALSE(later);
    EXPECT_TRUE(contains(later.error().text, "an earlier collective failed"));
  });
}

TEST(SharedMemoryFaults, ARankThatLeavesIsNamedByAllWithinASecond) {
  FakeJob job(7, 60s);
  job.share_memory();
  std::atomic<std::int64_t> left_ns{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    ASSERT_TRUE(all->barrier());
    if (rank == 1) {
      all.reset();  // its connections close
      left_ns = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
      return;
    }
    std::vector<double> data(1'000'000);
    const auto done = all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT64, DRUN_SUM);
    const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_PEER);
    EXPECT_EQ(done.error().rank, 1) << done.error().text;
    EXPECT_TRUE(contains(done.error().text, "rank 1 on node1 closed its connection during allreduce #2"))
        << done.error().text;
    EXPECT_LT(now - left_ns, 5'000'000'000) << "explaining takes up to a second";
  });
}

TEST(SharedMemoryFaults, ALateRankIsWaitedFor) {
  FakeJob job(3, 20s);
  job.share_memory();
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    for (int late = 0; late < 3; ++late) {
      if (late == rank) std::this_thread::sleep_for(300ms);  // longer than one wait; the lateness is what is tested
      std::vector<double> data(200'000, 1.0);
      ASSERT_TRUE(all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT64, DRUN_SUM));
      EXPECT_EQ(data.back(), 3.0);
    }
  });
}

// Rank 1 calls only after rank 0 has read its clock.
TEST(SharedMemoryOfTwo, TheClockIsAskedBeforeTheOtherOneComes) {
  struct Asked final : CallClock::Listener {
    std::atomic<bool> yes{false};
    void call_began() override { yes = true; }
  } asked;
  FakeJob job(2);
  const auto segment = make_segment(2);
  ASSERT_TRUE(segment);
  job.run([&](int rank) {
    const JobContext job_context = job.job_context(rank);
    auto backend = make_shm_backend(job_context, Group::all(job_context), segment, std::make_unique<NoNetwork>());
    EXPECT_TRUE(backend->asks_for_time());
    std::vector<std::int32_t> data(1, rank + 3);
    Operation small = call(OpKind::kAllreduce, 1, 1);
    small.clock = {};
    if (rank == 0) small.clock.tell(&asked);
    const auto until = Clock::now() + 20s;
    while (rank == 1 && !asked.yes && Clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(rank == 0 || asked.yes);
    const auto before = Clock::now();
    ASSERT_TRUE(backend->allreduce(small, span_of(data)));
    ASSERT_EQ(data[0], 7);
    EXPECT_GE(small.clock.began(), before);
    EXPECT_LE(small.clock.began(), Clock::now());
    Operation large = call(OpKind::kAllreduce, 2, 2048);
    std::vector<std::int32_t> many(2048, rank);
    ASSERT_TRUE(backend->allreduce(large, span_of(many)));
    EXPECT_FALSE(large.clock.is_short());
  });
}

TEST(Counter, WrapsAndWakesItsSleepers) {
  Counter counter{};
  Sleepers sleepers{};
  counter.move_to(UINT32_MAX - 1, sleepers);
  EXPECT_TRUE(counter.has_reached(UINT32_MAX - 1));
  EXPECT_FALSE(counter.has_reached(1));
  std::thread sleeper([&] {
    const auto until = Clock::now() + 20s;
    while (!counter.has_reached(1) && Clock::now() < until) counter.sleep(1, 10s, sleepers);
  });
  const auto began = Clock::now();
  counter.move_to(UINT32_MAX, sleepers);
  counter.move_to(1, sleepers);
  sleeper.join();
  EXPECT_TRUE(counter.has_reached(1));
  EXPECT_TRUE(counter.has_reached(UINT32_MAX));
  EXPECT_LT(Clock::now() - began, 5s);
}

// After a lost wake-up a rank would sleep for longer than the test may take.
TEST(Counter, WakesWhoeverSleeps) {
  for (const bool order : {false, order_others_when_asleep()}) {
    Counter counters[2]{};
    Sleepers sleepers[2]{};
    const auto began = Clock::now();
    const auto go = [&](int own) {
      for (std::uint32_t step = 1; step <= 3000; ++step) {
        counters[own].publish(step);
        counters[own].settle(sleepers[own], order);
        while (!counters[1 - own].has_reached(step)) counters[1 - own].sleep(step, 60s, sleepers[1 - own], order);
      }
    };
    std::thread other(go, 1);
    go(0);
    other.join();
    EXPECT_LT(Clock::now() - began, 50s);
  }
}

TEST(Counter, SleepsNoLongerThanItIsTold) {
  Counter counter{};
  Sleepers sleepers{};
  const auto began = Clock::now();
  counter.sleep(1, 50ms, sleepers);
  EXPECT_GE(Clock::now() - began, 49ms);
  EXPECT_LT(Clock::now() - began, 5s);
}

}  // namespace
}  // namespace drun::runtime
