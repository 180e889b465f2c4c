#include "agent/end_plan.h"

#include <gtest/gtest.h>

namespace drun::agent {
namespace {

using std::chrono::seconds;
using Step = EndPlan::Step;

const Deadline kStart = Deadline() + std::chrono::hours(1);

TEST(EndPlan, WithoutAnOrderNothingIsDue) {
  EndPlan plan;
  EXPECT_EQ(plan.take(kStart), Step::kNone);
  EXPECT_EQ(plan.next(), Deadline::max());
}

TEST(EndPlan, TermOnceThenKillAgainAndAgain) {
  EndPlan plan;
  plan.order(kStart + seconds(1), seconds(5));
  EXPECT_EQ(plan.take(kStart), Step::kNone);
  EXPECT_EQ(plan.next(), kStart + seconds(1));
  EXPECT_EQ(plan.take(kStart + seconds(1)), Step::kTerm);
  EXPECT_EQ(plan.take(kStart + seconds(2)), Step::kNone);
  EXPECT_EQ(plan.next(), kStart + seconds(6));
  EXPECT_EQ(plan.take(kStart + seconds(6)), Step::kKill);
  EXPECT_EQ(plan.take(kStart + seconds(7)), Step::kKill);
}

TEST(EndPlan, WithoutAGraceTimeKillComesAtOnce) {
  EndPlan plan;
  plan.order(kStart, seconds(0));
  EXPECT_EQ(plan.take(kStart), Step::kKill);
}

TEST(EndPlan, ALaterOrderCanOnlyMakeItEarlier) {
  EndPlan plan;
  plan.order(kStart + seconds(1), seconds(5));
  plan.order(kStart + seconds(3), seconds(30));
  EXPECT_EQ(plan.next(), kStart + seconds(1));
  EXPECT_EQ(plan.kill_at(), kStart + seconds(6));
  plan.order(kStart, seconds(2));
  EXPECT_EQ(plan.next(), kStart);
  EXPECT_EQ(plan.kill_at(), kStart + seconds(2));
}

}  // namespace
}  // namespace drun::agent
