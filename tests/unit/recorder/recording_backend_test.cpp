#include "runtime/src/backend/recording_backend.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>

#include "base/clock.h"
#include "tests/unit/recorder/recorder_memory.h"

namespace drun::runtime {
namespace {

using recorder::operation;
using recorder::RecorderMemory;

// Runs the test's function in the middle of every call.
class Inner final : public Backend {
 public:
  std::function<Status()> during = [] { return Status{}; };
  bool closed = false, asks = false;
  const Operation* in = nullptr;  // the current allreduce or barrier

  Status allreduce(const Operation& operation, const Span&) override {
    in = &operation;
    return during();
  }
  Status reduce(const Operation&, const Span&) override { return during(); }
  Status reduce_scatter(const Operation&, const Span&) override { return during(); }
  Status broadcast(const Operation&, void*, std::size_t) override { return during(); }
  Status allgather(const Operation&, void*, const std::vector<Block>&) override { return during(); }
  Status gather(const Operation&, const void*, void*) override { return during(); }
  Status scatter(const Operation&, const void*, void*) override { return during(); }
  Status alltoall(const Operation&, const void*, const std::vector<Block>&, void*, const std::vector<Block>&) override {
    return during();
  }
  Status transfer(const std::vector<Transfer>&) override { return during(); }
  Status adasum(const Operation&, const Span&) override { return during(); }
  Status barrier(const Operation&) override { return during(); }
  bool asks_for_time() const override { return asks; }
  bool has_closed(int) const override { return false; }
  void close() override { closed = true; }
};

class RecordingBackendTest : public ::testing::Test {
 protected:
  RecordingBackendTest() {
    auto inner = std::make_unique<Inner>();
    inner_ = inner.get();
    backend_ = make_recording_backend(std::move(inner), memory_.writer(), group());
  }
  // Ranks 8, 6, 4 and 2 of the job; this rank is 6.
  static Group group() {
    Group out;
    out.ranks = {8, 6, 4, 2};
    out.own = 1;
    return out;
  }
  recorder::Standing now() { return memory_.reader->standing(); }

  RecorderMemory memory_{32};
  Inner* inner_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

TEST_F(RecordingBackendTest, EveryCallIsOpenWhileItGoesOnAndThenEnded) {
  std::uint64_t seq = 0;
  std::size_t n_seen = 0;
  inner_->during = [&] {
    const auto standing = now();
    EXPECT_TRUE(standing.open && standing.open->seq == seq);
    ++n_seen;
    return Status{};
  };
  const auto op = [&](OpKind kind) {
    auto made = operation(kind, ++seq);
    made.count = 1;
    return made;
  };
  char byte = 0;
  const Span one{&byte, 1, DRUN_INT8}, four{&byte, 4, DRUN_INT8};
  EXPECT_TRUE(backend_->allreduce(op(OpKind::kAllreduce), one));
  EXPECT_TRUE(backend_->reduce(op(OpKind::kReduce), one));
  EXPECT_TRUE(backend_->reduce_scatter(op(OpKind::kReduceScatter), four));
  EXPECT_TRUE(backend_->broadcast(op(OpKind::kBroadcast), &byte, 1));
  EXPECT_TRUE(backend_->allgather(op(OpKind::kAllgather), &byte, {}));
  EXPECT_TRUE(backend_->gather(op(OpKind::kGather), &byte, &byte));
  EXPECT_TRUE(backend_->scatter(op(OpKind::kScatter), &byte, &byte));
  EXPECT_TRUE(backend_->alltoall(op(OpKind::kAlltoall), &byte, {}, &byte, {}));
  EXPECT_TRUE(backend_->transfer({{op(OpKind::kSend), &byte}}));
  EXPECT_TRUE(backend_->adasum(op(OpKind::kAllreduce), one));
  EXPECT_TRUE(backend_->barrier(op(OpKind::kBarrier)));
  EXPECT_EQ(n_seen, 11u);
  EXPECT_FALSE(now().open);
  EXPECT_EQ(now().n_begun, 11u);
}

TEST_F(RecordingBackendTest, TransfersAreCallsOfTheirOwnWithTheRankOfTheJob) {
  auto send = operation(OpKind::kSend, 1), recv = operation(OpKind::kRecv, 5);
  send.root = 0;
  recv.root = 3;
  send.comm = recv.comm = 16;
  recv.queued = std::chrono::microseconds(250);
  inner_->during = [&] {
    EXPECT_EQ(now().open->seq, 1u);
    EXPECT_EQ(now().n_begun, 2u);
    return Status(failure(DRUN_ERROR_PEER, "gone", 2));
  };
  EXPECT_FALSE(backend_->transfer({{send, nullptr}, {recv, nullptr}}));
  EXPECT_FALSE(now().open);
  const auto first = memory_.reader->call(1), second = memory_.reader->call(2);
  EXPECT_EQ(first->root, 8);
  EXPECT_EQ(second->root, 2);
  EXPECT_EQ(first->queued_us, 0u);
  EXPECT_EQ(second->queued_us, 250u);
  EXPECT_EQ(first->comm, 16u);
  EXPECT_EQ(first->group, 8u);
  EXPECT_EQ(first->status, DRUN_ERROR_PEER);
  EXPECT_EQ(second->status, DRUN_ERROR_PEER);
}

TEST_F(RecordingBackendTest, AReductionInPartsIsOneCall) {
  auto op = operation(OpKind::kAllreduce, 1);
  op.count = 10;
  char bytes[64];
  for (const std::size_t n : {4u, 4u, 2u}) {
    EXPECT_TRUE(backend_->allreduce(op, Span{bytes, n, DRUN_INT8}));
    EXPECT_EQ(now().open.has_value(), n == 4u);
  }
  op = operation(OpKind::kReduceScatter, 2);
  op.count = 3;  // for each of 4 ranks
  EXPECT_TRUE(backend_->reduce_scatter(op, Span{bytes, 8, DRUN_INT8}));
  EXPECT_TRUE(now().open.has_value());
  EXPECT_TRUE(backend_->reduce_scatter(op, Span{bytes, 4, DRUN_INT8}));
  EXPECT_FALSE(now().open);
  op = operation(OpKind::kAllreduce, 3);
  op.count = 0;
  EXPECT_TRUE(backend_->allreduce(op, Span{bytes, 0, DRUN_INT8}));
  EXPECT_FALSE(now().open);
  EXPECT_EQ(now().n_begun, 3u);
}

TEST_F(RecordingBackendTest, AFailureEndsTheCallWithItsStatus) {
  inner_->during = [] { return Status(failure(DRUN_ERROR_TIMEOUT, "too late", 2)); };
  auto op = operation(OpKind::kAllreduce, 1);
  op.count = 10;
  char bytes[4];
  EXPECT_FALSE(backend_->allreduce(op, Span{bytes, 4, DRUN_INT8}));
  EXPECT_FALSE(now().open);
  EXPECT_EQ(now().last->status, DRUN_ERROR_TIMEOUT);
  EXPECT_FALSE(backend_->barrier(operation(OpKind::kBarrier, 2)));
  EXPECT_EQ(now().last->seq, 2u);
  EXPECT_EQ(now().last->status, DRUN_ERROR_TIMEOUT);
}

TEST_F(RecordingBackendTest, AnExceptionLeavesNothingOpen) {
  inner_->during = []() -> Status { throw std::runtime_error("no memory"); };
  EXPECT_THROW((void)backend_->barrier(operation(OpKind::kBarrier, 1)), std::runtime_error);
  backend_->close();  // as the communicator does after an exception
  EXPECT_TRUE(inner_->closed);
  EXPECT_FALSE(now().open);
  EXPECT_NE(now().last->status, 0);
}

TEST_F(RecordingBackendTest, ABackendThatAsksForTheTimeIsRecordedWhenItDoes) {
  inner_->asks = true;
  char byte = 0;
  auto op = operation(OpKind::kAllreduce, 1);
  op.count = 1;
  inner_->during = [&] {
    EXPECT_EQ(now().n_begun, 0u);
    const auto before = monotonic_ns();
    EXPECT_EQ(inner_->in->deadline(), inner_->in->clock.began() + op.timeout);
    EXPECT_TRUE(now().open);
    EXPECT_GE(now().open->started_ns, before);
    const auto after = monotonic_ns();
    EXPECT_LE(now().open->started_ns, after);
    while (monotonic_ns() <= after) {
    }
    return Status{};
  };
  EXPECT_TRUE(backend_->allreduce(op, Span{&byte, 1, DRUN_INT8}));
  EXPECT_GT(now().last->ended_ns, now().last->started_ns);  // both are read from the clock
}

TEST_F(RecordingBackendTest, ACallThatWaitsForNobodyEndsWhenItBegan) {
  inner_->asks = true;
  char byte = 0;
  auto op = operation(OpKind::kAllreduce, 1);
  op.count = 1;
  inner_->during = [&] {
    inner_->in->clock.began();
    inner_->in->clock.ends_at_once();
    return Status{};
  };
  EXPECT_TRUE(backend_->allreduce(op, Span{&byte, 1, DRUN_INT8}));
  EXPECT_FALSE(now().open);
  EXPECT_EQ(now().last->seq, 1u);
  EXPECT_EQ(now().last->ended_ns, now().last->started_ns);
}

// A call whose clock was started before the backend is not short. In a barrier over several hosts, for example, the
// backend of one host ends at once if all members there have arrived.
TEST_F(RecordingBackendTest, OnlyWhatTheBackendItselfHasBegunIsShort) {
  char byte = 0;
  for (const bool asks : {false, true}) {
    inner_->asks = asks;
    auto op = operation(OpKind::kAllreduce, asks ? 2 : 1);
    op.count = 1;
    if (asks) op.clock.begin_at(Clock::now() - std::chrono::seconds(5));
    inner_->during = [&] {
      inner_->in->clock.ends_at_once();
      const auto began = monotonic_ns();
      while (monotonic_ns() <= began) {
      }
      return Status{};
    };
    EXPECT_TRUE(backend_->allreduce(op, Span{&byte, 1, DRUN_INT8}));
    EXPECT_GT(now().last->ended_ns, now().last->started_ns);
  }
  EXPECT_GT(now().last->ended_ns - now().last->started_ns, 4'000'000'000);
}

TEST_F(RecordingBackendTest, ABackendThatNeverAsksIsRecordedAtTheEnd) {
  inner_->asks = true;
  const auto before = monotonic_ns();
  EXPECT_TRUE(backend_->barrier(operation(OpKind::kBarrier, 7)));
  EXPECT_EQ(now().n_begun, 1u);
  EXPECT_FALSE(now().open);
  EXPECT_EQ(now().last->seq, 7u);
  EXPECT_GE(now().last->started_ns, before);
}

TEST(RecordingBackend, IsLeftOutWithoutARecorder) {
  auto inner = std::make_unique<Inner>();
  const Backend* same = inner.get();
  EXPECT_EQ(make_recording_backend(std::move(inner), nullptr, Group()).get(), same);
}

}  // namespace
}  // namespace drun::runtime
