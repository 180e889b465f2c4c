#include "launcher/output/stdin_flow.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

constexpr std::size_t kWindow = 1u << 20;
constexpr auto kStallNotice = std::chrono::seconds(30);

StdinFlow::Time at(int seconds) { return StdinFlow::Time{} + std::chrono::seconds(seconds); }

TEST(StdinFlow, CreditFollowsTheSlowest) {
  StdinFlow flow({0, 1}, kWindow);
  flow.sent(1000, at(0));
  EXPECT_EQ(flow.taken(0, 1000, at(0)), 0u);
  EXPECT_EQ(flow.taken(1, 300, at(0)), 300u);
  EXPECT_EQ(flow.taken(1, 700, at(0)), 700u);
}

TEST(StdinFlow, ARankThatIsOverHoldsNobodyUp) {
  StdinFlow flow({0, 1}, kWindow);
  flow.sent(1000, at(0));
  EXPECT_EQ(flow.taken(0, 1000, at(0)), 0u);
  EXPECT_EQ(flow.over(1), 1000u);
  EXPECT_FALSE(flow.gets(1));
  EXPECT_FALSE(flow.gets_end(1));
  EXPECT_TRUE(flow.gets_end(0));
}

TEST(StdinFlow, OthersThanItsReadersDoNotMatter) {
  StdinFlow flow({1}, kWindow);
  flow.sent(10, at(0));
  EXPECT_EQ(flow.taken(0, 10, at(0)), 0u);
  EXPECT_EQ(flow.over(0), 0u);
  EXPECT_FALSE(flow.gets(0));
  EXPECT_EQ(flow.taken(1, 10, at(0)), 10u);
}

// Rank 1 has as much input as its pipe holds, and doesn't read.
StdinFlow with_one_that_never_reads() {
  StdinFlow flow({0, 1}, kWindow);
  flow.sent(kWindow, at(0));
  flow.taken(0, kWindow, at(1));
  flow.sent(flow.taken(1, StdinFlow::kPipe, at(1)), at(1));
  flow.taken(0, StdinFlow::kPipe, at(1));
  return flow;
}

TEST(StdinFlow, OneThatNeverReadsIsLeftBehindAfterThePatience) {
  StdinFlow flow = with_one_that_never_reads();
  EXPECT_TRUE(flow.stalled(at(30), kStallNotice).empty());
  const auto stalled = flow.stalled(at(31), kStallNotice);
  ASSERT_EQ(stalled.size(), 1u);
  EXPECT_EQ(stalled[0].rank, 1);
  EXPECT_TRUE(stalled[0].left_behind);
  EXPECT_EQ(flow.take_credit(), kWindow);
  EXPECT_FALSE(flow.gets(1));
  EXPECT_TRUE(flow.stalled(at(99), kStallNotice).empty()) << "told twice";
}

TEST(StdinFlow, ALateReaderMayReadUpToTheGapAndNoFurther) {
  StdinFlow flow = with_one_that_never_reads();
  flow.stalled(at(31), kStallNotice);
  flow.sent(100, at(32));
  EXPECT_FALSE(flow.gets_end(1)) << "an end before bytes that are missing";
  flow.taken(1, 1000, at(40));
  EXPECT_FALSE(flow.has_reached_gap(1));
  flow.taken(1, kWindow - 1000, at(40));
  EXPECT_TRUE(flow.has_reached_gap(1));
}

TEST(StdinFlow, ALateReaderThatMissedNothingGoesOn) {
  StdinFlow flow = with_one_that_never_reads();
  flow.stalled(at(31), kStallNotice);
  EXPECT_TRUE(flow.gets_end(1));
  flow.taken(1, kWindow, at(40));
  EXPECT_FALSE(flow.has_reached_gap(1));
  EXPECT_TRUE(flow.gets(1));
}

TEST(StdinFlow, ASlowReaderIsWaitedForAndTold) {
  StdinFlow flow({0, 1}, kWindow);
  flow.sent(kWindow, at(0));
  flow.taken(0, kWindow, at(1));
  flow.taken(1, StdinFlow::kPipe + 1, at(1));
  const auto stalled = flow.stalled(at(31), kStallNotice);
  // The window is not used up, so more input may be read before any rank waits.
  EXPECT_TRUE(stalled.empty());
  flow.sent(StdinFlow::kPipe + 1, at(31));
  flow.taken(0, StdinFlow::kPipe + 1, at(31));
  const auto later = flow.stalled(at(32), kStallNotice);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_FALSE(later[0].left_behind);
  EXPECT_TRUE(flow.gets(1));
}

TEST(StdinFlow, OneThatHasReadABitOfWhatItsPipeHoldsIsWaitedFor) {
  StdinFlow flow = with_one_that_never_reads();
  EXPECT_EQ(flow.taken(1, 0, at(20)), 0u);
  EXPECT_TRUE(flow.stalled(at(49), kStallNotice).empty());
  const auto stalled = flow.stalled(at(50), kStallNotice);
  ASSERT_EQ(stalled.size(), 1u);
  EXPECT_FALSE(stalled[0].left_behind);
  EXPECT_TRUE(flow.gets(1));
}

TEST(StdinFlow, NobodyIsLeftBehindWhereNobodyWaits) {
  StdinFlow alone({0}, kWindow);
  alone.sent(kWindow, at(0));
  EXPECT_TRUE(alone.stalled(at(99), kStallNotice).empty());
  StdinFlow both({0, 1}, kWindow);
  both.sent(kWindow, at(0));
  EXPECT_TRUE(both.stalled(at(99), kStallNotice).empty());
}

}  // namespace
}  // namespace drun::launcher
