// Collectives over a fake NCCL: which calls use it, their order on the user's streams, and the handling of failures.
// docs/gpu.md.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "runtime/include/drun/gpu.h"
#include "runtime/src/gpu/nccl_comm.h"
#include "runtime/src/gpu/stream_wait.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::Device;
using testing::fake;
using testing::FakeJob;
using ::testing::HasSubstr;
using testing::ramp;
using testing::repeated;

int of_nccl(const char* name) {
  void* const library = ::dlopen(FAKE_NCCL, RTLD_NOW);
  const auto count = reinterpret_cast<int (*)()>(::dlsym(library, name));
  return count != nullptr ? count() : -1;
}

class NcclJobs : public ::testing::Test {
 protected:
  void SetUp() override {
    fake();
    ::setenv("DRUN_NCCL_LIB", FAKE_NCCL, 1);
  }
  void TearDown() override {
    for (const char* name : {"DRUN_FAKE_CUDA", "DRUN_FAKE_NCCL", "DRUN_SHARED_GPU", "DRUN_NCCL_LIB", "DRUN_NCCL_SPLIT",
                             "NCCL_COMM_BLOCKING"}) {
      ::unsetenv(name);
    }
  }
  static void run(int size, const std::function<void(Communicator& all)>& body,
                  std::chrono::milliseconds timeout = std::chrono::seconds(30), int without = -1) {
    FakeJob job(size, timeout);
    for (int rank = 0; rank < size; ++rank)
      job.set_gpu(rank, rank == without ? gpu::Presence::kHidden : gpu::Presence::kThere);
    job.run([&](int rank) {
      auto all = Communicator::create(job.job_context(rank));
      ASSERT_TRUE(all) << all.error().text;
      body(**all);
      EXPECT_EQ(fake().n_contexts(), 0);
    });
  }
  // Waits until the device has done all work of this stream.
  static void wait_for(void* stream = nullptr) { ASSERT_TRUE(fake().wait(stream)); }
};

TEST_F(NcclJobs, AllreduceAndItsLike) {
  for (const int size : {1, 2, 3}) {
    const int before = fake().n_pinned_ever();
    run(size, [size](Communicator& all) {
      const auto rank = static_cast<float>(all.rank());
      const auto sum_of_ranks = static_cast<float>(size * (size - 1)) / 2;
      int own_stream = 0;
      CallOptions options;
      options.stream = &own_stream;
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
        const Device send(n, rank + 1), recv(n, -1);
        ASSERT_DONE(all.allreduce(send.get(), recv.get(), n, DRUN_FLOAT32, DRUN_SUM, options));
        ASSERT_DONE(all.allreduce(send.get(), send.get(), n, DRUN_FLOAT32, DRUN_MAX, options));
        wait_for(&own_stream);
        EXPECT_EQ(recv.values(), repeated(n, sum_of_ranks + static_cast<float>(size)));
        EXPECT_EQ(send.values(), repeated(n, static_cast<float>(size)));
      }
      const Device send(10, rank), recv(10, -1);
      ASSERT_DONE(all.reduce(send.get(), recv.get(), 10, DRUN_FLOAT32, DRUN_SUM, size - 1, options));
      const auto blocks = static_cast<std::size_t>(size);
      const Device parts(ramp(4 * blocks, 0)), part(4, -1);
      ASSERT_DONE(all.reduce_scatter(parts.get(), part.get(), 4, DRUN_FLOAT32, DRUN_AVG, options));
      wait_for(&own_stream);
      EXPECT_EQ(recv.values(), repeated(10, all.rank() == size - 1 ? sum_of_ranks : -1));
      EXPECT_EQ(part.values(), ramp(4, 4 * rank));
    });
    EXPECT_EQ(fake().n_pinned_ever(), before) << "something went through the host";
  }
}

TEST_F(NcclJobs, LeavesNothingBehind) {
  const int n_events = fake().n_events(), n_pinned = fake().n_pinned();
  run(2, [](Communicator& all) {
    const Device data(2, 1);
    for (int i = 0; i < 3; ++i) ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_ADASUM));
    wait_for();
    ASSERT_DONE(all.finish_gpu());
    all.leave();
    all.end_gpu();
  });
  EXPECT_EQ(fake().n_events(), n_events);
  EXPECT_EQ(fake().n_pinned(), n_pinned);
}

TEST_F(NcclJobs, ScalesGoWithTheSum) {
  run(2, [](Communicator& all) {
    const Device data(3, static_cast<float>(all.rank() + 1));
    CallOptions options;
    options.prescale = 2;
    options.postscale = 10;
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 3, DRUN_FLOAT32, DRUN_SUM, options));
    wait_for();
    EXPECT_EQ(data.values(), repeated(3, 60));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 3, DRUN_FLOAT32, DRUN_AVG, options));
    wait_for();
    EXPECT_EQ(data.values(), repeated(3, 1200));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 3, DRUN_FLOAT32, DRUN_AVG));
    wait_for();
    EXPECT_EQ(data.values(), repeated(3, 1200));
    // Reductions that NCCL can't do go through the host, with the right result.
    const int before = fake().n_pinned_ever();
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 3, DRUN_FLOAT32, DRUN_MAX, options));
    EXPECT_EQ(data.values(), repeated(3, 24000));
    EXPECT_GT(fake().n_pinned_ever(), before);
    const Device same(3, 5);
    ASSERT_DONE(all.allreduce(same.get(), same.get(), 3, DRUN_FLOAT32, DRUN_ADASUM));
    EXPECT_EQ(same.values(), repeated(3, 5));
  });
}

// Adasum runs in kernels on the GPU, with the host's result except for the order of the dot products' additions.
TEST_F(NcclJobs, AdasumStaysOnTheGpu) {
  const testing::KernelsForTests kernels;
  for (const int size : {1, 2, 3, 4, 6}) {
    const int before = fake().n_pinned_ever();
    std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
    run(size, [&](Communicator& all) {
      const auto rank = static_cast<std::size_t>(all.rank());
      for (const std::size_t n : {std::size_t{1}, std::size_t{20'000}}) {
        std::vector<float> given(n);
        for (std::size_t i = 0; i < n; ++i) given[i] = std::sin(static_cast<float>((i + 1) * (rank + 2)));
        CallOptions options;
        options.prescale = 2;
        options.postscale = 0.5;
        auto expected = given;
        CallOptions of_host = options;
        of_host.memory = DRUN_MEMORY_HOST;
        ASSERT_DONE(all.allreduce(given.data(), expected.data(), n, DRUN_FLOAT32, DRUN_ADASUM, of_host));
        const Device send(given), recv(n, -1);
        ASSERT_DONE(all.allreduce(send.get(), recv.get(), n, DRUN_FLOAT32, DRUN_ADASUM, options));
        ASSERT_DONE(all.allreduce(send.get(), send.get(), n, DRUN_FLOAT32, DRUN_ADASUM, options));
        wait_for();
        const auto result = recv.values();
        EXPECT_EQ(send.values(), result);  // in place, the same
        const Device one(given), other(given);
        ASSERT_DONE(all.allreduce_all({{one.get(), one.get(), n}, {other.get(), other.get(), n}}, DRUN_FLOAT32,
                                      DRUN_ADASUM, options));
        wait_for();
        EXPECT_EQ(one.values(), result);
        EXPECT_EQ(other.values(), result);
        for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(result[i], expected[i], 1e-6F) << i << " of " << n;
        results[rank] = result;
      }
    });
    for (const auto& result : results) EXPECT_EQ(result, results[0]) << size << " ranks";
    EXPECT_EQ(fake().n_pinned_ever(), before) << "something went through the host";
  }
}

// One rank without kernels is enough. A GPU keeps its loaded kernels, so the job is larger than that of any other test.
TEST_F(NcclJobs, WithoutKernelsAdasumGoesThroughTheHost) {
  const testing::KernelsForTests kernels;
  ::setenv("DRUN_FAKE_CUDA", "no-kernels", 1);
  const int before = fake().n_pinned_ever();
  run(7, [](Communicator& all) {
    const Device same(3, 5);
    fake().put_on(same.get(), 2);  // no kernels are loaded there yet
    ASSERT_DONE(all.allreduce(same.get(), same.get(), 3, DRUN_FLOAT32, DRUN_ADASUM));
    EXPECT_EQ(same.values(), repeated(3, 5));
  });
  EXPECT_GT(fake().n_pinned_ever(), before);
}

// NCCL's rings carry a block once over each link; sends would carry it from one rank to each.
TEST_F(NcclJobs, AllgatherOfDifferentLengthsIsOfBroadcasts) {
  const int n_sends = of_nccl("fake_nccl_sends");
  run(3, [](Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    const std::size_t counts[] = {1, 2, 0}, offsets[] = {0, 1, 3};
    const Device mine(counts[rank], static_cast<float>(rank)), all_of_them(3, -1);
    ASSERT_DONE(all.allgatherv(mine.get(), counts[rank], all_of_them.get(), counts, offsets, DRUN_FLOAT32));
    wait_for();
    EXPECT_EQ(all_of_them.values(), (std::vector<float>{0, 1, 1}));
  });
  EXPECT_EQ(of_nccl("fake_nccl_sends"), n_sends);
}

TEST_F(NcclJobs, MovesBetweenRanks) {
  constexpr int kSize = 3;
  const int before = fake().n_pinned_ever();
  run(kSize, [](Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    const auto own = static_cast<float>(rank);
    const Device data(5, own), one(2, own), gathered(2 * kSize, -1), in_place(2 * kSize, own);
    ASSERT_DONE(all.broadcast(data.get(), 5, DRUN_FLOAT32, 1));
    ASSERT_DONE(all.allgather(one.get(), gathered.get(), 2, DRUN_FLOAT32));
    ASSERT_DONE(all.allgather(in_place.get() + 2 * rank, in_place.get(), 2, DRUN_FLOAT32));
    const std::size_t counts[] = {1, 2, 1}, offsets[] = {0, 2, 5};
    const Device mine(counts[rank], own), spread(7, -1);
    ASSERT_DONE(all.allgatherv(mine.get(), counts[rank], spread.get(), counts, offsets, DRUN_FLOAT32));
    const Device at_root(2 * kSize, -1), given(ramp(2 * kSize, 10)), got(2, -1);
    ASSERT_DONE(all.gather(one.get(), at_root.get(), 2, DRUN_FLOAT32, 2));
    ASSERT_DONE(all.scatter(given.get(), got.get(), 2, DRUN_FLOAT32, 0));
    const Device from(ramp(kSize, 10 * own)), to(kSize, -1), holes(6, -1);
    ASSERT_DONE(all.alltoall(from.get(), to.get(), 1, DRUN_FLOAT32));
    const std::size_t one_each[] = {1, 1, 1}, apart[] = {0, 2, 4};
    ASSERT_DONE(all.alltoallv(from.get(), one_each, nullptr, holes.get(), one_each, apart, DRUN_FLOAT32));
    const int next = static_cast<int>(rank + 1) % kSize, previous = static_cast<int>(rank + 2) % kSize;
    const Device sent(2000, own), received(2000, -1);
    ASSERT_DONE(all.transfer({{OpKind::kSend, sent.get(), 2000, DRUN_FLOAT32, next, {}},
                              {OpKind::kRecv, received.get(), 2000, DRUN_FLOAT32, previous, {}}}));
    wait_for();
    EXPECT_EQ(data.values(), repeated(5, 1));
    EXPECT_EQ(gathered.values(), (std::vector<float>{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(in_place.values(), (std::vector<float>{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(spread.values(), (std::vector<float>{0, -1, 1, 1, -1, 2, -1}));
    EXPECT_EQ(at_root.values(), rank == 2 ? (std::vector<float>{0, 0, 1, 1, 2, 2}) : repeated(2 * kSize, -1));
    EXPECT_EQ(got.values(), ramp(2, 10 + 2 * own));
    EXPECT_EQ(to.values(), (std::vector<float>{own, 10 + own, 20 + own}));
    EXPECT_EQ(holes.values(), (std::vector<float>{own, -1, 10 + own, -1, 20 + own, -1}));
    EXPECT_EQ(received.values(), repeated(2000, static_cast<float>(previous)));
  });
  EXPECT_EQ(fake().n_pinned_ever(), before);
}

int n_groups() {
  static const auto count = [] {
    void* const library = ::dlopen(FAKE_NCCL, RTLD_NOW);
    return reinterpret_cast<int (*)()>(::dlsym(library, "fake_groups"));
  }();
  return count();
}

TEST_F(NcclJobs, ManyAllreducesAreOneGroup) {
  const int before = n_groups();
  run(2, [](Communicator& all) {
    const auto own = static_cast<float>(all.rank() + 1);
    const Device first(3, own), second(5, 10 * own), none(0);
    int streams[2];
    ASSERT_DONE(all.allreduce_all({{first.get(), first.get(), 3, DRUN_MEMORY_AUTO, &streams[0]},
                                   {none.get(), none.get(), 0, DRUN_MEMORY_AUTO, nullptr},
                                   {second.get(), second.get(), 5, DRUN_MEMORY_AUTO, &streams[1]}},
                                  DRUN_FLOAT32, DRUN_SUM));
    wait_for(&streams[0]);
    EXPECT_EQ(first.values(), repeated(3, 3));
    wait_for(&streams[1]);
    EXPECT_EQ(second.values(), repeated(5, 30));
  });
  EXPECT_EQ(n_groups(), before + 2);  // one on each rank
}

TEST_F(NcclJobs, CallsOfAGroupOnTheHostGoTheirOwnWay) {
  const int before = fake().n_pinned_ever();
  run(2, [](Communicator& all) {
    const auto own = static_cast<float>(all.rank() + 1);
    const Device first(3, own), second(5, 10 * own);
    std::vector<float> host(4, own), other(2, own);
    for (const bool begins_on_gpu : {true, false}) {
      std::vector<Communicator::AllreduceCall> calls = {{first.get(), first.get(), 3},
                                                        {host.data(), host.data(), 4},
                                                        {second.get(), second.get(), 5},
                                                        {other.data(), other.data(), 2}};
      if (!begins_on_gpu) std::reverse(calls.begin(), calls.end());
      ASSERT_DONE(all.allreduce_all(calls, DRUN_FLOAT32, DRUN_SUM));
      wait_for();
      const float sum = begins_on_gpu ? 3 : 6;
      EXPECT_EQ(first.values(), repeated(3, sum));
      EXPECT_EQ(second.values(), repeated(5, 10 * sum));
      EXPECT_EQ(host, repeated(4, sum));
      EXPECT_EQ(other, repeated(2, sum));
    }
    const auto refused =
        all.allreduce_all({{first.get(), first.get(), 3}, {host.data(), second.get(), 4}}, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, DRUN_ERROR_ARGUMENT);
  });
  EXPECT_EQ(fake().n_pinned_ever(), before) << "data of a GPU went through the host";
}

TEST_F(NcclJobs, RanksWithOtherCallsOfANamedGroupOnTheHostAreRefused) {
  run(2, [](Communicator& all) {
    const Device on_gpu(3, 1);
    std::vector<float> on_host(3, 1);
    std::vector<Communicator::AllreduceCall> calls = {{on_gpu.get(), on_gpu.get(), 3},
                                                      {on_host.data(), on_host.data(), 3}};
    if (all.rank() == 1) std::swap(calls[0], calls[1]);
    CallOptions options;
    options.names = 7;
    const auto done = all.allreduce_all(calls, DRUN_FLOAT32, DRUN_SUM, options);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH) << done.error().text;
  });
}

TEST_F(NcclJobs, ACallComesAfterTheStreamsWorkAndBeforeItsNextAndWaitsForNeither) {
  run(2, [](Communicator& all) {
    int stream = 0;
    CallOptions options;
    options.stream = &stream;
    const Device data(4, -1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));  // sets up
    const auto values = repeated(4, static_cast<float>(all.rank() + 1));
    fake().block(&stream, 1000);
    fake().write_later(&stream, data.get(), values.data(), 4 * sizeof(float));
    const auto began = std::chrono::steady_clock::now();
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(900));
    wait_for(&stream);
    EXPECT_EQ(data.values(), repeated(4, 6));
  });
}

// Holds even if another stream has more work on each rank: the fake NCCL meets in the order in which streams come, like
// kernels that wait for each other.
TEST_F(NcclJobs, CallsOfSeveralStreamsAreOneAfterTheOther) {
  run(2, [](Communicator& all) {
    int streams[2] = {};
    CallOptions options[2];
    for (int i = 0; i < 2; ++i) options[i].stream = &streams[i];
    auto part = all.split(0, 0);
    ASSERT_TRUE(part);
    const Device a(4, static_cast<float>(all.rank())), b(4, static_cast<float>(10 * all.rank()));
    for (Communicator* comm : {&all, part->get()}) {  // sets up
      ASSERT_DONE(comm->allreduce(a.get(), a.get(), 4, DRUN_FLOAT32, DRUN_MAX, options[0]));
    }
    for (int round = 0; round < 3; ++round) {
      fake().block(&streams[(round + all.rank()) % 2], 50);
      ASSERT_DONE(all.allreduce(a.get(), a.get(), 4, DRUN_FLOAT32, DRUN_SUM, options[round % 2]));
      ASSERT_DONE(all.allreduce(b.get(), b.get(), 4, DRUN_FLOAT32, DRUN_SUM, options[1 - round % 2]));
      ASSERT_DONE((*part)->allreduce(b.get(), b.get(), 4, DRUN_FLOAT32, DRUN_MAX, options[1 - round % 2]));
      for (int& stream : streams) wait_for(&stream);
    }
    EXPECT_EQ(a.values(), repeated(4, 8));
    EXPECT_EQ(b.values(), repeated(4, 40));
  });
}

// Work that the stream gets between a background call and the wait for it runs concurrently with the call.
TEST_F(NcclJobs, TheStreamWaitsForACallInTheBackgroundWhenItIsAskedFor) {
  std::atomic<bool> is_seen{false};
  run(2, [&](Communicator& all) {
    int stream = 0;
    gpu::StreamWait later;
    CallOptions at_once, options;
    at_once.stream = options.stream = &stream;
    options.later = &later;
    const Device data(4, static_cast<float>(all.rank() + 1)), other(4, -1), more(4, 2);
    ASSERT_DONE(all.allreduce(more.get(), more.get(), 4, DRUN_FLOAT32, DRUN_SUM, at_once));  // sets up
    while (all.rank() == 1 && !is_seen) std::this_thread::yield();
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
    const auto values = repeated(4, 7);
    fake().write_later(&stream, other.get(), values.data(), 4 * sizeof(float));
    if (all.rank() == 0) {  // the other rank has not called yet
      wait_for(&stream);
      EXPECT_EQ(other.values(), values);
      EXPECT_EQ(data.values(), repeated(4, 1));
      is_seen = true;
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(later.carry_out(), gpu::kSuccess);
    wait_for(&stream);
    EXPECT_EQ(data.values(), repeated(4, 3));
    // A capture can't wait for work that was not captured.
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
    EXPECT_TRUE(later.is_possible());
    ASSERT_DONE(all.barrier());
    fake().capture(1);
    EXPECT_FALSE(later.is_possible());
    ASSERT_DONE(all.barrier());
    fake().capture(0);
    ASSERT_DONE(all.barrier());
    EXPECT_TRUE(later.is_possible());
    EXPECT_EQ(later.carry_out(), gpu::kSuccess);
    wait_for(&stream);
    EXPECT_EQ(data.values(), repeated(4, 6));
  });
}

// The other stream waits instead of the call's own stream, which goes on.
TEST_F(NcclJobs, AnotherStreamMayWaitForACallInTheBackground) {
  run(2, [](Communicator& all) {
    int stream = 0, reader = 0;
    gpu::StreamWait later;
    CallOptions options;
    options.stream = &stream;
    const Device data(4, static_cast<float>(all.rank() + 1)), seen(4, -1), other(4, -1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));  // sets up
    wait_for(&stream);
    options.later = &later;
    if (all.rank() == 1) fake().block(&stream, 1000);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
    const auto other_stream = reinterpret_cast<gpu::Stream>(&reader);
    EXPECT_TRUE(later.is_possible(other_stream));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(later.carry_out(other_stream), gpu::kSuccess);
    EXPECT_EQ(drun_gpu_copy(seen.get(), data.get(), 4 * sizeof(float), &reader), DRUN_OK);
    const auto values = repeated(4, 7);
    fake().write_later(&stream, other.get(), values.data(), 4 * sizeof(float));
    if (all.rank() == 0) {  // the other rank's GPU has not reached the call
      wait_for(&stream);
      EXPECT_EQ(other.values(), values);
      EXPECT_EQ(seen.values(), repeated(4, -1));
    }
    wait_for(&reader);
    EXPECT_EQ(seen.values(), repeated(4, 6));
    wait_for(&stream);
    all.poll();
  });
}

// NCCL's calls do not run on the per-thread default stream, because NCCL has threads of its own.
TEST_F(NcclJobs, TheStreamOfAThreadIsOnlyWaitedFor) {
  run(2, [](Communicator& all) {
    CallOptions options;
    options.stream = gpu::stream_of_thread();
    const Device data(4, static_cast<float>(all.rank() + 1));
    for (int i = 0; i < 2; ++i) {
      ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
      wait_for(options.stream);
    }
    EXPECT_EQ(data.values(), repeated(4, 6));
  });
}

// The calls are made together, each on its own stream; one is waited for at once, one later, one never.
TEST_F(NcclJobs, CallsOfAGroupHaveWaitsOfTheirOwn) {
  const int n_events = fake().n_events();
  run(2, [](Communicator& all) {
    int streams[3] = {};
    gpu::StreamWait first, never;
    std::vector<Device> data;
    std::vector<Communicator::AllreduceCall> calls;
    for (std::size_t i = 0; i < 3; ++i) {
      data.emplace_back(std::size_t{4}, static_cast<float>(all.rank() + 1));
      gpu::StreamWait* const later = i == 0 ? &first : i == 1 ? nullptr : &never;
      calls.push_back({data[i].get(), data[i].get(), 4, DRUN_MEMORY_AUTO, &streams[i], later});
    }
    ASSERT_DONE(all.allreduce_all(calls, DRUN_FLOAT32, DRUN_SUM));
    wait_for(&streams[1]);
    EXPECT_EQ(data[1].values(), repeated(4, 3));
    EXPECT_EQ(first.carry_out(), gpu::kSuccess);
    wait_for(&streams[0]);
    EXPECT_EQ(data[0].values(), repeated(4, 3));
    ASSERT_DONE(all.finish_gpu());
    all.leave();
    all.end_gpu();
  });
  EXPECT_EQ(fake().n_events(), n_events);
}

TEST_F(NcclJobs, WhatIsEmptyOrOfTheHostGoesItsOwnWayInATransfer) {
  run(2, [](Communicator& all) {
    const auto own = static_cast<float>(all.rank());
    const int peer = 1 - all.rank();
    const Device data(2, own), in(2, -1);
    std::vector<float> host(3, own), host_in(3, -1);
    ASSERT_DONE(all.barrier());
    ASSERT_DONE(all.broadcast(data.get(), 2, DRUN_FLOAT32, 0));
    ASSERT_DONE(all.transfer({{OpKind::kSend, data.get(), 2, DRUN_FLOAT32, peer, {}},
                              {OpKind::kSend, host.data(), 3, DRUN_FLOAT32, peer, {}},
                              {OpKind::kSend, all.rank() == 0 ? data.get() : nullptr, 0, DRUN_FLOAT32, peer, {}},
                              {OpKind::kRecv, in.get(), 2, DRUN_FLOAT32, peer, {}},
                              {OpKind::kRecv, host_in.data(), 3, DRUN_FLOAT32, peer, {}},
                              {OpKind::kRecv, nullptr, 0, DRUN_FLOAT32, peer, {}}}));
    ASSERT_DONE(all.barrier());
    wait_for();
    EXPECT_EQ(in.values(), repeated(2, 0));
    EXPECT_EQ(host_in, repeated(3, static_cast<float>(peer)));
    // Rank 1 sends and receives nothing, but passes a buffer.
    const std::size_t to_self[] = {all.rank() == 0 ? 2u : 0u, 0}, none[] = {0, 0};
    const Device out(2, -1);
    ASSERT_DONE(all.alltoallv(data.get(), all.rank() == 0 ? to_self : none, nullptr, out.get(),
                              all.rank() == 0 ? to_self : none, nullptr, DRUN_FLOAT32));
    wait_for();
    EXPECT_EQ(out.values(), repeated(2, all.rank() == 0 ? 0 : -1));
  });
}

TEST_F(NcclJobs, MemoryOfAnotherGpuIsRefused) {
  run(1, [](Communicator& all) {
    const Device data(2, 1), other(2, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    fake().put_on(other.get(), 1);
    const Status done = all.allreduce(other.get(), other.get(), 2, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_ARGUMENT);
    EXPECT_THAT(done.error().text, HasSubstr("its memory is on GPU 1, but this communicator's is on GPU 0"));
  });
}

TEST_F(NcclJobs, PartsHaveTheirOwn) {
  run(3, [](Communicator& all) {
    auto part = all.split(all.rank() == 1 ? 1 : 0, 0);
    ASSERT_TRUE(part) << part.error().text;
    const Device data(2, static_cast<float>(all.rank() + 1));
    ASSERT_DONE((*part)->allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
    EXPECT_EQ(data.values(), repeated(2, all.rank() == 1 ? 2 : 4));
  });
}

TEST_F(NcclJobs, WithARankThatHasNoGpuAllGoesThroughTheHost) {
  ::testing::internal::CaptureStderr();
  run(
      2,
      [](Communicator& all) {
        const Device device(4, 1);
        std::vector<float> host(4, 2);
        float* const data = all.rank() == 0 ? device.get() : host.data();
        for (int i = 0; i < 2; ++i) ASSERT_DONE(all.allreduce(data, data, 4, DRUN_FLOAT32, DRUN_SUM));
        EXPECT_EQ(all.rank() == 0 ? device.values() : host, repeated(4, 6));
      },
      std::chrono::seconds(30), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "drun: warning: data of GPUs goes through the host, which is slow: rank 1 on node1 has no GPU "
            "(CUDA_VISIBLE_DEVICES leaves none)\n");
}

TEST_F(NcclJobs, WithADriverThatIsTooOldForNcclAllGoesThroughTheHost) {
  ::setenv("DRUN_FAKE_CUDA", "cuda-12", 1);
  ::testing::internal::CaptureStderr();
  run(2, [](Communicator& all) {
    const Device data(4, static_cast<float>(all.rank() + 1));
    for (int i = 0; i < 2; ++i) ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(data.values(), repeated(4, 6));
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("drun: warning: data of GPUs goes through the host, which is slow: rank 0 on node0 has no "
                        "NCCL that it can use: NCCL 2.28.9 is made for CUDA 13.0, and the host's driver knows CUDA "
                        "up to 12.8 ("));
  EXPECT_THAT(said, HasSubstr(" (nor has one other)"));
}

TEST_F(NcclJobs, WithAGpuForWhichNcclHasNoCodeAllGoesThroughTheHost) {
  ::setenv("DRUN_FAKE_CUDA", "pascal", 1);
  ::testing::internal::CaptureStderr();
  run(2, [](Communicator& all) {
    const Device data(4, static_cast<float>(all.rank() + 1));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(data.values(), repeated(4, 3));
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("NCCL 2.28.9 is made for CUDA 13.0, which has no code for this GPU (compute capability 6.1)"));
}

TEST_F(NcclJobs, RanksOnOneGpuAreRefusedOrGoThroughTheHost) {
  ::setenv("DRUN_FAKE_CUDA", "one-gpu", 1);
  FakeJob job(2);
  job.place_on_hosts({0, 0});
  const auto allreduce = [&](bool works) {
    for (const int rank : {0, 1}) job.set_gpu(rank, gpu::Presence::kThere);
    job.run([&](int rank) {
      auto all = Communicator::create(job.job_context(rank));
      ASSERT_TRUE(all) << all.error().text;
      const Device data(2, 1);
      const Status done = (*all)->allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
      ASSERT_EQ(done.has_value(), works) << (done ? "" : done.error().text);
      if (!works) {
        EXPECT_THAT(done.error().text, HasSubstr("use the same GPU"));
      } else {
        EXPECT_EQ(data.values(), repeated(2, 2));
      }
    });
  };
  allreduce(false);
  FakeJob second(2);
  ::setenv("DRUN_SHARED_GPU", "1", 1);
  second.place_on_hosts({0, 0});
  for (const int rank : {0, 1}) second.set_gpu(rank, gpu::Presence::kThere);
  second.run([&](int rank) {
    auto all = Communicator::create(second.job_context(rank));
    ASSERT_TRUE(all) << all.error().text;
    const Device data(2, 1);
    ASSERT_DONE((*all)->allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(data.values(), repeated(2, 2));
  });
}

// Polls like the polling thread until the job breaks. Returns the status of a call made after that.
Status poll_until_broken(Communicator& all, const Device& data) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!all.is_broken() && std::chrono::steady_clock::now() < until) {
    all.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
}

// Rank 1 is late but waits, too; rank 2 never calls.
TEST_F(NcclJobs, ARankThatDoesNotCallIsNamedAtTheDeadline) {
  run(
      3,
      [&](Communicator& all) {
        const Device data(2, 1);
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
        wait_for();
        all.poll();
        if (all.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2200));
        CallOptions options;
        options.name = "grad.17";
        if (all.rank() < 2) ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM, options));
        const Status broken = poll_until_broken(all, data);
        ASSERT_FALSE(broken);
        EXPECT_EQ(broken.error().rank, 2) << broken.error().text;
        EXPECT_EQ(broken.error().status, DRUN_ERROR_TIMEOUT);
        EXPECT_THAT(broken.error().text, HasSubstr("allreduce #2 'grad.17' timed out after 3 s waiting for rank 2"));
        wait_for();  // the user's stream is not blocked
      },
      std::chrono::milliseconds(3000));
}

// An average of integers goes through the host, after the call over NCCL in the same stream.
TEST_F(NcclJobs, ACallThroughTheHostSeesThatTheCallBeforeItFails) {
  run(
      3,
      [&](Communicator& all) {
        const Device data(2, 1), numbers(2, 0);
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
        wait_for();
        if (all.rank() == 2) {
          EXPECT_FALSE(poll_until_broken(all, data));
          return;
        }
        CallOptions options;
        options.timeout = std::chrono::milliseconds(1000);
        options.name = "grad.17";
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM, options));
        const auto began = std::chrono::steady_clock::now();
        const Status done = all.allreduce(numbers.get(), numbers.get(), 2, DRUN_INT32, DRUN_AVG);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().rank, 2) << done.error().text;
        EXPECT_THAT(done.error().text, HasSubstr("'grad.17' timed out after 1 s waiting for rank 2"));
        EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
      },
      std::chrono::seconds(40));
}

TEST_F(NcclJobs, ARankWhoseOwnGpuIsStuckIsNamedAtTheDeadline) {
  run(
      2,
      [&](Communicator& all) {
        const Device data(2, 1);
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
        wait_for();
        if (all.rank() == 0) fake().block(nullptr, 4000);
        CallOptions options;
        if (all.rank() == 0) options.timeout = std::chrono::milliseconds(500);
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM, options));
        const Status broken = poll_until_broken(all, data);
        ASSERT_FALSE(broken);
        EXPECT_EQ(broken.error().rank, 0) << broken.error().text;
        EXPECT_THAT(broken.error().text, HasSubstr("waiting for this rank's own GPU"));  // rank 1 learns it from rank 0
        wait_for();
      },
      std::chrono::seconds(20));
}

TEST_F(NcclJobs, ARankThatLeavesIsNamedLongBeforeTheDeadline) {
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
    if (all.rank() == 1) {
      ASSERT_DONE(all.finish_gpu());
      all.leave();
      all.end_gpu();
      return;
    }
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    const auto began = std::chrono::steady_clock::now();
    const Status broken = poll_until_broken(all, data);
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().rank, 1);
    EXPECT_THAT(broken.error().text, HasSubstr("rank 1 on node1 has left"));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  });
}

// The leaving rank has done its part; only this rank's own GPU is slow.
TEST_F(NcclJobs, ARankThatLeavesAfterItsPartHarmsNobody) {
  run(2, [&](Communicator& all) {
    const Device data(2, static_cast<float>(all.rank()));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    ASSERT_DONE(all.barrier());
    const int peer = 1 - all.rank();
    if (all.rank() == 1) {
      ASSERT_DONE(all.send(data.get(), 2, DRUN_FLOAT32, peer));
      ASSERT_DONE(all.finish_gpu());
      all.leave();
      all.end_gpu();
      return;
    }
    const Device in(2, -1);
    fake().block(nullptr, 4500);
    ASSERT_DONE(all.recv(in.get(), 2, DRUN_FLOAT32, peer));
    ASSERT_DONE(all.finish_gpu());
    EXPECT_EQ(in.values(), repeated(2, 1));
  });
}

int n_registered() { return of_nccl("fake_nccl_registered"); }

// Memory from NCCL's allocator.
class NcclMemory {
 public:
  explicit NcclMemory(std::size_t n_bytes = std::size_t{4} << 20) {
    const Device there(1);
    EXPECT_EQ(drun_alloc_like(&memory_, n_bytes, there.get()), DRUN_OK) << drun_last_error();
  }
  ~NcclMemory() { EXPECT_EQ(drun_free(memory_), DRUN_OK) << drun_last_error(); }
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;
  float* get() const { return static_cast<float*>(memory_); }

 private:
  void* memory_ = nullptr;
};

TEST_F(NcclJobs, MemoryThatIsRegisteredIsNcclsUntilItIsNot) {
  const int in_registered = of_nccl("fake_nccl_in_registered");
  run(3, [&](Communicator& all) {
    const NcclMemory memory;
    ASSERT_DONE(all.register_memory(memory.get(), 4096));  // sets NCCL up
    ASSERT_DONE(all.register_memory(memory.get(), 4096));  // already registered
    ASSERT_DONE(all.register_memory(memory.get(), 8192));
    ASSERT_DONE(all.barrier());
    EXPECT_EQ(n_registered(), 3);
    ASSERT_DONE(all.allreduce(memory.get() + 1024, memory.get() + 1024, 10, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
    ASSERT_DONE(all.barrier());
    // A part registers memory separately.
    auto part = all.split(0, 0);
    ASSERT_TRUE(part);
    ASSERT_DONE((*part)->register_memory(memory.get() + 4, 100));
    ASSERT_DONE(all.barrier());
    EXPECT_EQ(n_registered(), 6);
    EXPECT_TRUE(gpu::is_registered(memory.get() + 4, 1));
    EXPECT_FALSE(gpu::is_registered(memory.get() + 1, 12));
    ASSERT_DONE(all.barrier());
    ASSERT_DONE(all.deregister(memory.get(), 1, "test"));
    ASSERT_DONE(all.barrier());
    EXPECT_EQ(n_registered(), 3);
    EXPECT_FALSE(gpu::is_registered(memory.get(), 1));
    ASSERT_DONE(all.barrier());
    ASSERT_DONE(all.deregister(memory.get(), std::size_t{4} << 20, "test"));
    ASSERT_DONE(all.barrier());
    EXPECT_FALSE(gpu::is_registered(memory.get(), std::size_t{4} << 20));
    ASSERT_DONE(all.allreduce(memory.get(), memory.get(), 10, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
  });
  EXPECT_EQ(n_registered(), 0);
  EXPECT_EQ(of_nccl("fake_nccl_in_registered"), in_registered + 3);
}

TEST_F(NcclJobs, TheEndOfACommunicatorIsThatOfItsRegistrations) {
  const int n_left = of_nccl("fake_nccl_left_registered");
  for (const bool ends_well : {true, false}) {
    run(2, [&](Communicator& all) {
      const NcclMemory memory;
      ASSERT_DONE(all.register_memory(memory.get(), 4096));
      if (ends_well) {
        ASSERT_DONE(all.finish_gpu());
        all.leave();
        all.end_gpu();
      } else {
        ASSERT_FALSE(all.fail({DRUN_ERROR_SYSTEM, "a test's", all.rank(), "here"}));
      }
      EXPECT_FALSE(gpu::is_registered(memory.get(), 4096));
    });
  }
  EXPECT_EQ(n_registered(), 0);
  EXPECT_EQ(of_nccl("fake_nccl_left_registered"), n_left) << "a communicator that ended well knew of memory";
}

// NCCL's deregistration hangs, as if another rank of the host were stopped.
TEST_F(NcclJobs, NoEndWaitsForeverForNcclsWordOnMemory) {
  const auto began = std::chrono::steady_clock::now();
  run(2, [&](Communicator& all) {
    const Device there(1);
    void* memory = nullptr;  // never freed: NCCL keeps it registered to the end
    ASSERT_EQ(drun_alloc_like(&memory, std::size_t{4} << 20, there.get()), DRUN_OK);
    ASSERT_DONE(all.register_memory(memory, 4096));
    auto part = all.split(0, 0);
    ASSERT_TRUE(part);
    ASSERT_DONE((*part)->register_memory(memory, 4096));
    ASSERT_DONE(all.barrier());
    ::setenv("DRUN_FAKE_NCCL", "deregister-hangs", 1);
    ASSERT_DONE(all.barrier());
    part->reset();
    all.poll();  // ends the part's communicator
    ASSERT_DONE(all.finish_gpu());
    all.leave();
    all.end_gpu();
    EXPECT_FALSE(gpu::is_registered(memory, 4096));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  ::unsetenv("DRUN_FAKE_NCCL");
  while (n_registered() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // by the threads left behind
}

// A graph keeps NCCL's communicator, but not the communicator's registrations.
TEST_F(NcclJobs, ACommunicatorThatIsLeftToAGraphKnowsNoMemory) {
  run(2, [](Communicator& all) {
    const NcclMemory memory;
    ASSERT_DONE(all.register_memory(memory.get(), 4096));
    ASSERT_DONE(all.allreduce(memory.get(), memory.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
    ASSERT_DONE(all.barrier());
    fake().capture(1);
    ASSERT_DONE(all.allreduce(memory.get(), memory.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    ASSERT_DONE(all.barrier());
    fake().capture(0);
    wait_for();
    ASSERT_DONE(all.finish_gpu());
    all.leave();
    all.end_gpu();
  });
  EXPECT_EQ(n_registered(), 0);
}

TEST_F(NcclJobs, MemoryThatOneCanNotRegisterNoneDoes) {
  ::setenv("DRUN_FAKE_NCCL", "no-register", 1);
  ::testing::internal::CaptureStderr();
  run(3, [](Communicator& all) {
    const NcclMemory memory;
    for (int i = 0; i < 2; ++i) ASSERT_DONE(all.register_memory(memory.get(), 4096));
    ASSERT_DONE(all.barrier());
    EXPECT_EQ(n_registered(), 0);
    ASSERT_DONE(all.allreduce(memory.get(), memory.get(), 10, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::MatchesRegex("drun: warning: memory is not registered with NCCL, which copies then: "
                                            "rank 2 on [^\n]*: ncclCommRegister: invalid usage\n"));
}

TEST_F(NcclJobs, OnlyMemoryOfOneKindIsRegistered) {
  run(2, [](Communicator& all) {
    std::vector<float> here(10);
    ASSERT_DONE(all.register_memory(here.data(), 40));
    ASSERT_DONE(all.register_memory(nullptr, 0));
    EXPECT_EQ(n_registered(), 0);
    const Device there(10, 1);
    const auto mixed = all.register_memory(all.rank() == 0 ? here.data() : there.get(), 40);
    ASSERT_FALSE(mixed);
    EXPECT_EQ(mixed.error().status, DRUN_ERROR_MISMATCH);
    EXPECT_THAT(mixed.error().text, HasSubstr("drun_register: rank 1 on "));
    EXPECT_THAT(mixed.error().text, HasSubstr(" gives memory of a GPU, and rank 0 on "));
    ASSERT_DONE(all.allreduce(there.get(), there.get(), 10, DRUN_FLOAT32, DRUN_SUM));  // the communicator still works
    wait_for();
  });
  ::testing::internal::CaptureStderr();
  run(2, [](Communicator& all) {
    const NcclMemory of_nccl;
    const Device of_driver(10, 1);
    ASSERT_DONE(all.register_memory(all.rank() == 0 ? of_nccl.get() : of_driver.get(), 40));
    EXPECT_EQ(n_registered(), 0);
    ASSERT_DONE(all.register_memory(of_driver.get(), 40));  // not registered
    // One rank says that its memory is the host's, though it is not.
    CallOptions told;
    told.memory = all.rank() == 0 ? DRUN_MEMORY_HOST : DRUN_MEMORY_AUTO;
    const auto mixed = all.register_memory(of_nccl.get(), 40, told);
    ASSERT_FALSE(mixed);
    EXPECT_EQ(mixed.error().status, DRUN_ERROR_MISMATCH);
    EXPECT_EQ(n_registered(), 0);
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("its memory is not of NCCL's allocator\n"));
}

// Registering does not wait for other ranks, because a rank without a GPU may train in memory of the host.
TEST_F(NcclJobs, WithARankThatHasNoGpuNothingIsRegistered) {
  run(
      2,
      [](Communicator& all) {
        const Device data(10, 1);
        if (all.rank() == 0) ASSERT_DONE(all.register_memory(data.get(), 40));
        ASSERT_DONE(all.barrier());
        EXPECT_EQ(n_registered(), 0);
      },
      std::chrono::seconds(30), 1);
}

// Holds even if another member frees its part later.
TEST_F(NcclJobs, APartThatIsFreedIsGivenBack) {
  const int n_events = fake().n_events();
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    for (int i = 0; i < 3; ++i) {
      auto part = all.split(0, 0);
      ASSERT_TRUE(part);
      ASSERT_DONE((*part)->allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
      if (all.rank() == 1) ASSERT_DONE(all.barrier());
      part->reset();
      if (all.rank() == 0) ASSERT_DONE(all.barrier());
      wait_for();
      all.poll();
    }
    ASSERT_DONE(all.finish_gpu());
    all.leave();
    all.end_gpu();
  });
  EXPECT_EQ(fake().n_events(), n_events);
}

// The setup needs all members, and the first call connects them.
TEST_F(NcclJobs, ARankThatDoesNotMakeTheFirstCallIsNamed) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(run(
                  3,
                  [&](Communicator& all) {
                    const NcclMemory memory;
                    ASSERT_DONE(all.register_memory(memory.get(), 4096));
                    if (all.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(30));
                    (void)all.allreduce(memory.get(), memory.get(), 2, DRUN_FLOAT32, DRUN_SUM);
                  },
                  std::chrono::milliseconds(2000)),
              ::testing::ExitedWithCode(75),
              "allreduce #[0-9]+ timed out after 2 s waiting for rank 2 on node2 .in NCCL");
}

// The NCCL communicators of one host end together; the end does not wait for a rank that comes later.
TEST_F(NcclJobs, EndsWhenItsOwnWorkHasEnded) {
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    if (all.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    ASSERT_DONE(all.finish_gpu());
    EXPECT_EQ(data.values(), repeated(2, 4));
    all.leave();
    const auto began = std::chrono::steady_clock::now();
    all.end_gpu();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(4));
  });
}

TEST_F(NcclJobs, AnErrorThatComesLaterBreaksTheJob) {
  ::setenv("DRUN_FAKE_NCCL", "late-error", 1);
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    fake().block(nullptr, 2000);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    const Status broken = poll_until_broken(all, data);
    ASSERT_FALSE(broken);
    EXPECT_THAT(broken.error().text, HasSubstr("remote process exited or there was a network error"));
  });
}

TEST_F(NcclJobs, AnAsynchronousErrorBreaksTheJobOnAllRanks) {
  ::setenv("DRUN_FAKE_NCCL", "async-error", 1);
  run(
      2,
      [&](Communicator& all) {
        const Device data(2, 1);
        (void)all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
        const Status done = poll_until_broken(all, data);
        ASSERT_FALSE(done);
        EXPECT_THAT(done.error().text, HasSubstr("remote process exited or there was a network error"));
        EXPECT_FALSE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
      },
      std::chrono::seconds(10));
}

// NCCL can't be made to return: the process ends, and does not hang while it holds a GPU.
TEST_F(NcclJobs, ASetupThatNeverEndsEndsTheProcess) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  ::setenv("DRUN_FAKE_NCCL", "init-stuck", 1);
  EXPECT_EXIT(
      run(
          2,
          [&](Communicator& all) {
            const Device data(2, 1);
            (void)all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
          },
          std::chrono::milliseconds(1000)),
      ::testing::ExitedWithCode(75),
      "drun: error: rank [01] on node[01]: allreduce #1 timed out after 1 s waiting for rank [01] on node[01] .in "
      "ncclCommInitRankConfig, which does not say for whom it waits.*ending this process");
}

// As with a stream whose queue is full.
TEST_F(NcclJobs, ADriverCallThatNeverReturnsEndsTheProcess) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const testing::KernelsForTests kernels;
  for (const auto& [call, op] : {std::pair("record-stuck", DRUN_SUM), std::pair("launch-stuck", DRUN_ADASUM)}) {
    ::setenv("DRUN_FAKE_CUDA", call, 1);
    EXPECT_EXIT(run(
                    2,
                    [&, op = op](Communicator& all) {
                      const Device data(2, 1);
                      (void)all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, op);
                    },
                    std::chrono::milliseconds(300)),
                ::testing::ExitedWithCode(75),
                "drun: error: rank [01] on node[01]: allreduce #1 timed out .*the driver.*ending this process");
  }
}

// As in a program that uses CUDA's runtime, which has a context current in each thread.
class CurrentContext {
 public:
  CurrentContext() {
    EXPECT_EQ(driver_.primary_context_retain(&context_, 0), gpu::kSuccess);
    EXPECT_EQ(driver_.context_push(context_), gpu::kSuccess);
  }
  ~CurrentContext() { EXPECT_EQ(driver_.context_pop(&context_), gpu::kSuccess); }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const gpu::Driver& driver_ = *gpu::loaded_driver();
  gpu::Context context_ = nullptr;
};

TEST_F(NcclJobs, ACallAsksTheDriverLittle) {
  std::atomic<int> in_place{0}, apart{0};
  run(2, [&](Communicator& all) {
    const CurrentContext current;
    const Device data(2, 1), other(2, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));  // sets up
    wait_for();
    constexpr int kCalls = 10;
    const auto n_asked = [&](float* recv) {
      int n = 0;
      for (int round = 0; round < 2; ++round) {  // the first one makes the events that the second one uses
        EXPECT_TRUE(all.barrier());
        const int before = fake().n_asked();
        EXPECT_TRUE(all.barrier());
        for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(all.allreduce(data.get(), recv, 2, DRUN_FLOAT32, DRUN_SUM));
        EXPECT_TRUE(all.barrier());
        n = fake().n_asked() - before;  // of both ranks
        wait_for();
        all.poll();
      }
      return n;
    };
    in_place = n_asked(data.get());
    apart = n_asked(other.get());
  });
  // Attributes of a pointer, the current context, whether the stream is captured, an event before and one after the
  // call.
  EXPECT_LE(in_place, 2 * 5 * 10);
  EXPECT_LE(apart, 2 * 6 * 10);
}

// Between two polls the calls of a short step would otherwise make thousands of events.
TEST_F(NcclJobs, CallsUseTheEventsOfThoseThatHaveEnded) {
  run(1, [&](Communicator& all) {
    const CurrentContext current;
    const Device data(2, 1);
    constexpr int kCalls = 16, kSteps = 20;
    const auto step = [&] {
      for (int i = 0; i < kCalls; ++i) ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
      wait_for();
    };
    for (int i = 0; i < 2; ++i) step();
    const int n_events = fake().n_events(), n_asked = fake().n_asked();
    for (int i = 0; i < kSteps; ++i) step();
    EXPECT_EQ(fake().n_events(), n_events);
    EXPECT_LE(fake().n_asked() - n_asked, kSteps * 6 * kCalls);
  });
}

// While the GPU is behind, there is nothing to take, and a look in vain is not repeated for each call.
TEST_F(NcclJobs, CallsThatAreAheadOfTheGpuSeldomLookForEvents) {
  run(1, [&](Communicator& all) {
    const CurrentContext current;
    const Device data(2, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
    fake().block(nullptr, 300);
    const int before = fake().n_asked();
    constexpr int kCalls = 160;
    for (int i = 0; i < kCalls; ++i) ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_LE(fake().n_asked() - before, kCalls * 7 + kCalls / 16);  // makes two events for each
  });
}

// NCCL from 2.23 on starts a thread for each group of a communicator that does not block.
TEST_F(NcclJobs, CallsCostNoThread) {
  for (const bool is_blocking : {true, false}) {
    if (!is_blocking) ::setenv("NCCL_COMM_BLOCKING", "0", 1);
    const int before = of_nccl("fake_nccl_threads");
    run(2, [](Communicator& all) {
      const Device data(2, 1);
      for (int i = 0; i < 10; ++i) ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
      wait_for();
      EXPECT_EQ(data.values(), repeated(2, 1024));
    });
    EXPECT_EQ(of_nccl("fake_nccl_threads") - before, is_blocking ? 0 : 2 * 10);
    ::unsetenv("NCCL_COMM_BLOCKING");
  }
}

TEST_F(NcclJobs, ASetupThatFailsSaysWhatNcclSays) {
  ::setenv("DRUN_FAKE_NCCL", "init-fails", 1);
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    const Status done = all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("ncclCommInitRankConfig"));
    const std::string& text = done.error().text;
    const auto hint = text.find("(hint: DRUN_GPU=0 on all ranks");
    EXPECT_NE(hint, std::string::npos) << text;
    EXPECT_EQ(text.find("(hint:", hint + 1), std::string::npos) << text;
  });
}

TEST_F(NcclJobs, WhatNcclRefusesFailsTheCall) {
  ::setenv("DRUN_FAKE_NCCL", "call-fails", 1);
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    const Status done = all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("allreduce #1 of 2 f32 (sum): NCCL: invalid usage"));
  });
}

TEST_F(NcclJobs, ALaunchersAbortEndsWhatIsUnderWay) {
  FakeJob job(2);
  for (const int rank : {0, 1}) job.set_gpu(rank, gpu::Presence::kThere);
  job.run([&](int rank) {
    auto made = Communicator::create(job.job_context(rank));
    ASSERT_TRUE(made) << made.error().text;
    Communicator& all = **made;
    const Device data(2, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
    wait_for();
    if (rank == 1) {
      job.abort({1, "node1", 4711, "killed by SIGKILL"});
    } else {
      (void)all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
    }
    const Status done = poll_until_broken(all, data);  // also on a rank that runs no call
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("rank 1 on node1 (pid 4711): killed by SIGKILL"));
    wait_for();
  });
}

TEST_F(NcclJobs, WhatIsCapturedIsNotWaitedForAndNotTheFirst) {
  run(
      2,
      [&](Communicator& all) {
        const Device data(2, 1);
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
        wait_for();
        ASSERT_DONE(all.barrier());
        all.poll();
        EXPECT_TRUE(all.is_idle());
        ASSERT_DONE(all.barrier());
        if (all.rank() == 0) fake().capture(1);
        ASSERT_DONE(all.barrier());
        ASSERT_DONE(all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM));
        wait_for();
        EXPECT_TRUE(all.is_idle());  // a captured call has no event to poll
        EXPECT_EQ(data.values(), repeated(2, 4));
        auto part = all.split(0, 0);
        ASSERT_TRUE(part);
        const Status first = (*part)->allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
        ASSERT_FALSE(first);
        EXPECT_EQ(first.error().status, DRUN_ERROR_STATE);
        EXPECT_THAT(first.error().text, HasSubstr("is being captured"));
      },
      std::chrono::seconds(10));
  fake().capture(0);
}

TEST_F(NcclJobs, MemoryOfBothKindsInOneCallIsRefused) {
  run(2, [&](Communicator& all) {
    const Device data(2, 1);
    std::vector<float> host(2, 1);
    const Status done = all.allreduce(data.get(), host.data(), 2, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("some of its memory is a GPU's and some the host's"));
  });
}

// Three hosts with two, two and one ranks. All ranks get their parts together with the communicator of all, without ids
// of their own.
class NcclOnHosts : public NcclJobs {
 protected:
  struct Parts {
    std::unique_ptr<Communicator> local, cross;
  };
  static void run(const std::vector<int>& hosts, const std::function<void(Communicator& all, Parts& parts)>& body,
                  std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    FakeJob job(static_cast<int>(hosts.size()), timeout);
    job.place_on_hosts(hosts);
    for (int rank = 0; rank < job.size(); ++rank) job.set_gpu(rank, gpu::Presence::kThere);
    job.run([&](int rank) {
      auto all = Communicator::create(job.job_context(rank));
      ASSERT_TRUE(all) << all.error().text;
      Parts parts;
      for (auto* part : {&parts.local, &parts.cross}) {
        auto made = (*all)->among(part == &parts.local ? (*all)->local_group() : (*all)->cross_group(),
                                  std::chrono::seconds(30), "test");
        ASSERT_TRUE(made) << made.error().text;
        *part = std::move(*made);
      }
      body(**all, parts);
      EXPECT_EQ(fake().n_contexts(), 0);
    });
  }
  // Each rank contributes its rank plus one.
  static std::vector<float> sum_of(Communicator& comm, int rank) {
    const Device data(3, static_cast<float>(rank + 1));
    const Status done = comm.allreduce(data.get(), data.get(), 3, DRUN_FLOAT32, DRUN_SUM);
    EXPECT_TRUE(done) << done.error().text;
    wait_for();
    return data.values();
  }
  static int n_split() { return of_nccl("fake_nccl_splits"); }
  static int n_ids() { return of_nccl("fake_nccl_ids"); }
  static int n_aborted() { return of_nccl("fake_nccl_aborted"); }
};

TEST_F(NcclOnHosts, LocalAndCrossAreSplitFromAll) {
  const int split_before = n_split(), ids_before = n_ids();
  run({0, 0, 1, 1, 2}, [&](Communicator& all, Parts& parts) {
    const int rank = all.rank();
    EXPECT_EQ(sum_of(all, rank), repeated(3, 15));
    EXPECT_EQ(sum_of(*parts.local, rank),
              repeated(3, std::vector<float>{3, 3, 7, 7, 5}[static_cast<std::size_t>(rank)]));
    EXPECT_EQ(sum_of(*parts.cross, rank), repeated(3, rank % 2 == 0 ? 9 : 6));
    // Results are in the order of the members.
    const Device own(1, static_cast<float>(rank)), got(static_cast<std::size_t>(parts.cross->size()), 0);
    ASSERT_DONE(parts.cross->allgather(own.get(), got.get(), 1, DRUN_FLOAT32));
    wait_for();
    EXPECT_EQ(got.values(), rank % 2 == 0 ? (std::vector<float>{0, 2, 4}) : (std::vector<float>{1, 3}));
  });
  EXPECT_EQ(n_split() - split_before, 5 + 5);
  EXPECT_EQ(n_ids() - ids_before, 1);
}

TEST_F(NcclOnHosts, APartThatIsUsedBeforeAllHasItsOwn) {
  const int split_before = n_split(), ids_before = n_ids();
  run({0, 0, 1, 1}, [&](Communicator& all, Parts& parts) {
    const int rank = all.rank();
    EXPECT_EQ(sum_of(*parts.local, rank), repeated(3, rank < 2 ? 3 : 7));
    EXPECT_EQ(sum_of(all, rank), repeated(3, 10));
    EXPECT_EQ(sum_of(*parts.local, rank), repeated(3, rank < 2 ? 3 : 7));
    EXPECT_EQ(sum_of(*parts.cross, rank), repeated(3, rank % 2 == 0 ? 4 : 6));
  });
  EXPECT_EQ(n_ids() - ids_before, 3);      // one for each host, and one for all ranks
  EXPECT_EQ(n_split() - split_before, 4);  // cross
}

// With one host, or one rank on each, a part has all ranks or one, and is not worth a communicator that may never be
// used.
TEST_F(NcclOnHosts, WhereThereAreNoPartsNothingIsSplit) {
  const int before = n_split();
  for (const auto& hosts : {std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2}}) {
    run(hosts, [](Communicator& all, Parts& parts) {
      EXPECT_EQ(sum_of(all, all.rank()), repeated(3, 6));
      auto& whole = parts.local->size() == all.size() ? *parts.local : *parts.cross;
      EXPECT_EQ(sum_of(whole, all.rank()), repeated(3, 6));
    });
  }
  EXPECT_EQ(n_split(), before);
}

TEST_F(NcclOnHosts, WithoutSplitsEachPartHasAnIdOfItsOwn) {
  ::setenv("DRUN_NCCL_SPLIT", "0", 1);
  const int split_before = n_split(), ids_before = n_ids();
  run({0, 0, 1, 1}, [](Communicator& all, Parts& parts) {
    EXPECT_EQ(sum_of(all, all.rank()), repeated(3, 10));
    EXPECT_EQ(sum_of(*parts.cross, all.rank()), repeated(3, all.rank() % 2 == 0 ? 4 : 6));
  });
  EXPECT_EQ(n_split(), split_before);
  EXPECT_EQ(n_ids() - ids_before, 3);
}

// The other ranks wait in NCCL for the one that failed.
TEST_F(NcclOnHosts, ASplitThatFailsOnOneRankEndsTheOthers) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  ::setenv("DRUN_FAKE_NCCL", "split-fails", 1);
  EXPECT_EXIT(run({0, 0, 1, 1},
                  [](Communicator& all, Parts&) {
                    const Device data(2, 1);
                    (void)all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
                  }),
              ::testing::ExitedWithCode(75),
              "drun: error: rank [123] on .*: rank 0 on node0 reports: setup of NCCL for allreduce #1: ncclCommSplit");
}

TEST_F(NcclOnHosts, ASplitInTheBackgroundThatFailsFailsTheSetupOfAll) {
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  int fails = 0;
  for (const char* what : {"split-fails", "second-part-fails"}) {
    ::setenv("DRUN_FAKE_NCCL", what, 1);
    const int before = n_aborted();
    const int attribution = fails++;
    run({0, 0, 1, 1}, [&](Communicator& all, Parts&) {
      const Device data(2, 1);
      const Status done = all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().text, HasSubstr("ncclCommSplit"));
      EXPECT_THAT(done.error().text, HasSubstr("(hint: DRUN_NCCL_SPLIT=0 goes without this; DRUN_GPU=0 on all ranks"));
      EXPECT_EQ(done.error().rank, attribution) << done.error().text;
      EXPECT_TRUE(all.is_broken());
    });
    // In the second split three ranks get their parts.
    EXPECT_EQ(n_aborted() - before, attribution == 0 ? 4 : 4 + 4 + 3);
  }
}

TEST_F(NcclOnHosts, ASplitThatNeverEndsEndsTheProcess) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  ::setenv("DRUN_FAKE_NCCL", "split-stuck", 1);
  EXPECT_EXIT(run(
                  {0, 0, 1, 1},
                  [](Communicator& all, Parts&) {
                    const Device data(2, 1);
                    (void)all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
                  },
                  std::chrono::milliseconds(2000)),
              ::testing::ExitedWithCode(75), ".in ncclCommSplit, which does not say for whom it waits");
}

// A communicator that the user made non-blocking is polled: NCCL is still making the parts when the others are aborted.
// It returns them then, and they are aborted, too.
TEST_F(NcclOnHosts, ASplitInTheBackgroundThatNeverEndsIsADeadline) {
  ::setenv("DRUN_FAKE_NCCL", "split-stuck", 1);
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  const int before = n_aborted();
  run(
      {0, 0, 1, 1},
      [](Communicator& all, Parts&) {
        const Device data(2, 1);
        const Status done = all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
        EXPECT_THAT(done.error().text, HasSubstr("(in ncclCommSplit, which does not say for whom it waits)"));
      },
      std::chrono::milliseconds(2000));
  EXPECT_EQ(n_aborted() - before, 4 + 4);
}

// Parts with running calls end with all the others.
TEST_F(NcclOnHosts, AFailureEndsThePartsToo) {
  run(
      {0, 0, 1, 1},
      [](Communicator& all, Parts& parts) {
        const int rank = all.rank();
        EXPECT_EQ(sum_of(all, rank), repeated(3, 10));
        (void)sum_of(*parts.local, rank);  // connects
        if (rank == 3) {
          (void)all.fail(Failure{DRUN_ERROR_ABORTED, "rank 3 gives up", 3, ""});
          return;
        }
        const Device data(2, 1);
        (void)parts.local->allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM);
        const Status done = poll_until_broken(*parts.local, data);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().rank, 3) << done.error().text;
        wait_for();  // the user's stream is not blocked
      },
      std::chrono::seconds(20));
}

}  // namespace
}  // namespace drun::runtime
