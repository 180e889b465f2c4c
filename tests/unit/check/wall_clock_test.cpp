#include "check/wall_clock.h"

#include <gtest/gtest.h>

namespace drun::check {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(WallClock, NothingBeforeARoundTrip) {
  control::HostFacts facts;
  facts.monotonic_ns = facts.realtime_ns = kSecond;
  EXPECT_FALSE(wall_clock_offset_ms(control::ClockAlignment{}, facts, 0, 0));
}

// The host booted 1000 s before this one; the facts were made 3 s ago and arrive late.
TEST(WallClock, OffsetIsThatOfTheMomentWhenTheFactsWereMade) {
  control::ClockAlignment clock;
  clock.add(100 * kSecond, 100 * kSecond + kSecond / 50, 1100 * kSecond + kSecond / 100);
  for (const std::int64_t off_s : {0, 90, -90}) {
    control::HostFacts facts;
    facts.monotonic_ns = 1200 * kSecond;                 // our 200 s
    facts.realtime_ns = (1700000200 + off_s) * kSecond;  // our clock showed 1700000200 then
    const auto offset = wall_clock_offset_ms(clock, facts, 203 * kSecond, 1700000203 * kSecond);
    ASSERT_TRUE(offset);
    EXPECT_NEAR(static_cast<double>(*offset), static_cast<double>(off_s) * 1000.0, 20.0) << off_s;
  }
}

}  // namespace
}  // namespace drun::check
