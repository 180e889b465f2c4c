#include "check/check_times.h"

#include <gtest/gtest.h>

namespace drun::check {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CheckDepth kDepths[] = {CheckDepth::kQuick, CheckDepth::kDefault, CheckDepth::kFull};

TEST(LinkSchedule, HasItsStepsInTheirOrderBeforeTheDeadline) {
  const Deadline now(seconds(1000));
  for (const CheckDepth depth : kDepths) {
    const Deadline deadline = now + check_time(depth);
    const LinkSchedule schedule = link_schedule(depth, now, deadline, Deadline::max());
    EXPECT_LT(now, schedule.speeds);
    EXPECT_LT(schedule.speeds, schedule.first_pass);
    EXPECT_LT(schedule.first_pass, schedule.ring);
    EXPECT_LT(schedule.ring, schedule.end);
    EXPECT_EQ(schedule.end, deadline);
  }
}

TEST(LinkSchedule, RepeatsForAsLongAgainUnlessQuick) {
  const Deadline now(seconds(1000));
  for (const CheckDepth depth : kDepths) {
    const LinkSchedule schedule = link_schedule(depth, now, now + check_time(depth), Deadline::max());
    const auto again = schedule.second_pass - schedule.end;
    EXPECT_EQ(again, depth == CheckDepth::kQuick ? milliseconds(0) : check_time(depth));
  }
}

TEST(LinkSchedule, LeavesTimeEvenIfTheStepsBeforeTookAllOfIt) {
  const Deadline now(seconds(1000));
  const auto left = [&](CheckDepth depth) { return link_schedule(depth, now, now, Deadline::max()).end - now; };
  EXPECT_EQ(left(CheckDepth::kQuick), milliseconds(1500));
  EXPECT_EQ(left(CheckDepth::kDefault), milliseconds(12000));
  EXPECT_EQ(left(CheckDepth::kFull), milliseconds(48000));
}

TEST(LinkSchedule, NeverPassesTheTimeoutOfTheUser) {
  const Deadline now(seconds(1000)), latest = now + seconds(3);
  for (const CheckDepth depth : kDepths) {
    const LinkSchedule schedule = link_schedule(depth, now, now + check_time(depth), latest);
    EXPECT_EQ(schedule.end, latest);
    EXPECT_EQ(schedule.second_pass, latest);
  }
}

}  // namespace
}  // namespace drun::check
