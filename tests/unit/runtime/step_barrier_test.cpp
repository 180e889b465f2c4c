// The steps of calls in shared memory, and the announcements in them. All ranks are objects of one thread: it arrives
// for one rank after the other, so that no wait has to sleep.
#include "runtime/src/backend/shm/step_barrier.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/src/backend/shm/announced_call.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using ::testing::HasSubstr;

Operation operation_of(OpKind kind, std::uint64_t seq, std::uint64_t count, const std::string& name = "") {
  Operation operation;
  operation.kind = kind;
  operation.dtype = DRUN_INT32;
  operation.seq = seq;
  operation.count = count;
  operation.timeout = std::chrono::seconds(30);
  operation.name = name;
  if (!name.empty()) operation.names = scan_name(name).digest;
  return operation;
}

TEST(AnnouncedCall, ReadsWhatWasWritten) {
  Operation operation = operation_of(OpKind::kBroadcast, 7, 1000, "layer.3");
  operation.op = DRUN_MAX;
  operation.root = 2;
  operation.comm = kCommCross;
  operation.counts = 0xabcdef01u;
  Segment::Call call{};
  write_call(operation, call);
  const auto read = read_call(call);
  ASSERT_TRUE(read);
  EXPECT_TRUE(same_call(*read, operation));
  EXPECT_EQ(name_of(*read), "broadcast[cross] #7") << "without the name";
  EXPECT_EQ(name_in(call), "layer.3");
}

TEST(AnnouncedCall, HasNoNameOfAnEarlierCall) {
  Segment::Call call{};
  write_call(operation_of(OpKind::kAllreduce, 1, 1, "grad"), call);
  write_call(operation_of(OpKind::kAllreduce, 3, 1), call);
  EXPECT_EQ(name_in(call), "");
}

TEST(AnnouncedCall, DigestDiffersWithEveryField) {
  const Operation base = operation_of(OpKind::kAllreduce, 7, 1000);
  std::vector<Operation> others(9, base);
  others[0].kind = OpKind::kReduce;
  others[1].dtype = DRUN_FLOAT32;
  others[2].op = DRUN_MIN;
  others[3].root = 1;
  others[4].comm = kCommLocal;
  others[5].seq = 8;
  others[6].count = 1001;
  others[7].counts = 1;
  others[8].names = 1;
  EXPECT_EQ(digest_of(base), digest_of(operation_of(OpKind::kAllreduce, 7, 1000)));
  for (std::size_t i = 0; i < others.size(); ++i) EXPECT_NE(digest_of(others[i]), digest_of(base)) << "field " << i;
}

// A network whose connections stay open.
class OpenNetwork final : public Backend {
 public:
  Status allreduce(const Operation&, const Span&) override { return {}; }
  Status reduce(const Operation&, const Span&) override { return {}; }
  Status reduce_scatter(const Operation&, const Span&) override { return {}; }
  Status broadcast(const Operation&, void*, std::size_t) override { return {}; }
  Status allgather(const Operation&, void*, const std::vector<Block>&) override { return {}; }
  Status gather(const Operation&, const void*, void*) override { return {}; }
  Status scatter(const Operation&, const void*, void*) override { return {}; }
  Status alltoall(const Operation&, const void*, const std::vector<Block>&, void*, const std::vector<Block>&) override {
    return {};
  }
  Status transfer(const std::vector<Transfer>&) override { return {}; }
  Status adasum(const Operation&, const Span&) override { return {}; }
  Status barrier(const Operation&) override { return {}; }
  bool has_closed(int) const override { return false; }
  void close() override {}
};

class StepBarriers : public ::testing::Test {
 protected:
  void SetUp() override {
    auto arena = Arena::create(Fd(::memfd_create("test", MFD_CLOEXEC)));
    ASSERT_TRUE(arena) << arena.error().message();
    auto segment = Segment::create(std::move(*arena), kSize);
    ASSERT_TRUE(segment) << segment.error().message();
    segment_ = *segment;
    for (int rank = 0; rank < kSize; ++rank) {
      jobs_.push_back(std::make_unique<JobContext>(job_.job_context(rank)));
      groups_.push_back(std::make_unique<Group>(Group::all(*jobs_.back())));
      barriers_.push_back(std::make_unique<StepBarrier>(*jobs_.back(), *groups_.back(), *segment_, network_));
    }
  }
  StepBarrier& of(std::size_t rank) { return *barriers_[rank]; }

  static constexpr int kSize = 3;
  FakeJob job_{kSize};
  OpenNetwork network_;
  std::shared_ptr<Segment> segment_;
  std::vector<std::unique_ptr<JobContext>> jobs_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<StepBarrier>> barriers_;
};

TEST_F(StepBarriers, GoFromStepToStep) {
  for (std::uint64_t seq = 1; seq <= 4; ++seq) {
    const Operation operation = operation_of(OpKind::kAllreduce, seq, 8);
    for (auto& barrier : barriers_) {
      barrier->announce(operation);
      barrier->arrive();
    }
    for (auto& barrier : barriers_) {
      EXPECT_EQ(barrier->step(), seq);
      const auto all = barrier->wait_for_arrivals(operation, true);
      EXPECT_TRUE(all) << all.error().text;
    }
    for (auto& barrier : barriers_) barrier->publish_reduced(barrier->step());
    for (auto& barrier : barriers_) EXPECT_TRUE(barrier->wait_for_reduced(operation, barrier->step()));
  }
}

TEST_F(StepBarriers, BeginAtTheStepOfTheSegment) {
  const Operation operation = operation_of(OpKind::kBarrier, 1, 0);
  for (auto& barrier : barriers_) {
    barrier->announce(operation);
    barrier->arrive();
  }
  EXPECT_EQ(StepBarrier(*jobs_[0], *groups_[0], *segment_, network_).step(), 1u);
}

TEST_F(StepBarriers, TakeAShortCallToEndAtOnceIfAllAreThere) {
  const Operation operation = operation_of(OpKind::kAllreduce, 1, 1), large = operation_of(OpKind::kAllreduce, 2, 1000);
  for (auto& barrier : barriers_) {
    barrier->announce(operation);
    barrier->publish_arrival();
  }
  EXPECT_TRUE(of(0).wait_for_peers(operation, 4));
  EXPECT_TRUE(operation.clock.has_begun());
  EXPECT_TRUE(operation.clock.is_short());
  EXPECT_TRUE(of(1).wait_for_peers(operation, 4));
  EXPECT_TRUE(of(2).wait_for_peers(operation, 4));
  for (auto& barrier : barriers_) {
    barrier->announce(large);
    barrier->publish_arrival();
  }
  EXPECT_TRUE(of(0).wait_for_peers(large, 4)) << "the last piece of a large call";
  EXPECT_FALSE(large.clock.is_short());
}

TEST_F(StepBarriers, NameTheRankWhoseCallDiffers) {
  const Operation ours = operation_of(OpKind::kAllreduce, 1, 8), theirs = operation_of(OpKind::kAllreduce, 1, 9);
  of(0).announce(ours);
  of(1).announce(ours);
  of(2).announce(theirs);
  for (auto& barrier : barriers_) barrier->arrive();
  const auto all = of(0).wait_for_arrivals(ours, true);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().status, DRUN_ERROR_MISMATCH);
  EXPECT_THAT(all.error().text, HasSubstr("rank 2 on node2"));
}

TEST_F(StepBarriers, TakeNothingForACallThatIsNone) {
  const Operation ours = operation_of(OpKind::kAllreduce, 1, 8);
  for (auto& barrier : barriers_) {
    barrier->announce(ours);
    barrier->arrive();
  }
  auto& control = segment_->control(2);
  control.arrival(1).digest = 0;
  auto& call = control.calls[1];
  const auto error = [&] {
    const auto all = of(0).wait_for_arrivals(ours, true);
    return all ? std::string() : all.error().text;
  };
  for (const int kind : {0, 14, 255}) {
    call.kind = static_cast<std::uint8_t>(kind);
    EXPECT_THAT(error(), HasSubstr("called something that is no call while rank 0")) << kind;
  }
  call.kind = static_cast<std::uint8_t>(ours.kind);
  call.dtype = 200;
  EXPECT_THAT(error(), HasSubstr("something that is no call"));
  call.dtype = DRUN_INT32;
  call.op = 200;
  EXPECT_THAT(error(), HasSubstr("something that is no call"));
  call.op = static_cast<std::uint8_t>(ours.op);
  call.seq = 2;
  call.names = 1;
  std::memset(call.name, '\033', sizeof call.name);
  EXPECT_THAT(error(), HasSubstr("allreduce #2 '" + std::string(kNameBytes, '?') + "'"));
}

TEST_F(StepBarriers, CompareNamesOnlyIfBothRanksGaveOne) {
  const Operation without = operation_of(OpKind::kAllreduce, 1, 8),
                  with = operation_of(OpKind::kAllreduce, 1, 8, "grad");
  of(0).announce(without);
  of(1).announce(with);
  of(2).announce(without);
  for (auto& barrier : barriers_) barrier->arrive();
  EXPECT_TRUE(of(0).wait_for_arrivals(without, true));
  EXPECT_TRUE(of(1).wait_for_arrivals(with, true));
}

}  // namespace
}  // namespace drun::runtime
