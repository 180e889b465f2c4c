#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/asio.h"

namespace drun {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Clock, StandsStillWhileTheProcessIsStopped) {
  const Deadline before = Clock::now();
  Clock::was_stopped_for(hours(1));
  const auto gap = Clock::now() - before;
  EXPECT_LT(gap, -hours(1) + std::chrono::minutes(1));
  EXPECT_GE(gap, -hours(1));
}

TEST(Clock, DoesNotMoveTimestamps) {
  const auto before = monotonic_ns();
  Clock::was_stopped_for(hours(1));
  EXPECT_GE(monotonic_ns(), before);
}

Task<void> wait_for(Event& event, Deadline deadline, bool& in_time) { in_time = co_await event.wait_until(deadline); }

// The timer below runs on real time; when it expires, the wait must read Clock again.
TEST(Clock, DeadlinesThatAreWaitedForMoveWithIt) {
  asio::io_context io(1);
  Event event(io.get_executor());
  TaskGroup tasks(io.get_executor());
  bool in_time = true;
  const auto began = std::chrono::steady_clock::now();
  tasks.spawn(wait_for(event, Clock::now() + milliseconds(100), in_time));
  io.poll();
  Clock::was_stopped_for(milliseconds(200));
  io.run();
  EXPECT_FALSE(in_time);
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(300));
}

}  // namespace
}  // namespace drun
