#include "control/clock_alignment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace drun::control {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(ClockAlignment, KnowsNothingBeforeTheFirstRoundTrip) { EXPECT_FALSE(ClockAlignment().ours(5).has_value()); }

TEST(ClockAlignment, IsRightWithinHalfARoundTrip) {
  // The host's clock is 1000 s ahead; the request takes 1 ms and the reply 9.
  const std::int64_t ahead = 1'000'000 * kMs;
  ClockAlignment clock;
  clock.add(100 * kMs, 110 * kMs, 101 * kMs + ahead);
  const auto moment = clock.ours(105 * kMs + ahead);
  ASSERT_TRUE(moment.has_value());
  EXPECT_LE(moment->earliest_ns, 105 * kMs);
  EXPECT_GE(moment->latest_ns, 105 * kMs);
  EXPECT_LE(moment->latest_ns - moment->earliest_ns, 10 * kMs + kMs / 10);
}

TEST(ClockAlignment, PrefersTheQuickestRoundTrip) {
  ClockAlignment clock;
  clock.add(0, 100 * kMs, 50 * kMs);
  clock.add(200 * kMs, 201 * kMs, 200 * kMs + kMs / 2);
  clock.add(300 * kMs, 380 * kMs, 370 * kMs);
  const auto moment = clock.ours(400 * kMs);
  EXPECT_LE(moment->latest_ns - moment->earliest_ns, 2 * kMs);
  EXPECT_EQ(moment->middle_ns(), 400 * kMs);
}

TEST(ClockAlignment, TrustsAnOldRoundTripLessAndLess) {
  const std::int64_t hour = 3'600'000 * kMs;
  ClockAlignment clock;
  clock.add(0, kMs, kMs / 2);
  const auto moment = clock.ours(hour);
  EXPECT_NEAR(static_cast<double>(moment->latest_ns - moment->earliest_ns), static_cast<double>(kMs + 2 * hour / 10000),
              kMs);
  clock.add(hour, hour + 100 * kMs, hour + 50 * kMs + 200 * kMs);  // it has drifted by 200 ms
  EXPECT_EQ(clock.ours(hour + 250 * kMs)->middle_ns(), hour + 50 * kMs);
}

TEST(ClockAlignment, IgnoresTimesThatNoClockShows) {
  ClockAlignment clock;
  for (const std::int64_t host_ns : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) clock.add(0, kMs, host_ns);
  EXPECT_FALSE(clock.ours(5).has_value());
  clock.add(0, kMs, kMs / 2);
  for (const std::int64_t host_ns : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
    clock.add(0, kMs, host_ns);
    EXPECT_FALSE(clock.ours(host_ns).has_value());
  }
  EXPECT_EQ(clock.ours(kMs)->middle_ns(), kMs);
}

TEST(ClockAlignment, IgnoresANegativeRoundTrip) {
  ClockAlignment clock;
  clock.add(10, 5, 7);
  EXPECT_FALSE(clock.ours(7).has_value());
}

// For UBSan: a host may send any number.
TEST(ClockAlignment, NoTimeOfAHostOverflows) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t now = 3'600'000 * kMs;
  for (const std::int64_t sent : {kMin, std::int64_t{-1}, std::int64_t{0}, now, kMax}) {
    for (const std::int64_t first : {kMin, std::int64_t{-1}, std::int64_t{0}, now, kMax}) {
      for (const std::int64_t later : {kMin, std::int64_t{-1}, std::int64_t{0}, now, kMax}) {
        ClockAlignment clock;
        clock.add(sent, now, first);
        clock.add(sent, now, later);
        const auto moment = clock.ours(later), other = clock.ours(first);
        if (!moment || !other) continue;
        EXPECT_LE(moment->earliest_ns, moment->latest_ns);
        EXPECT_LE(moment->earliest_ns, moment->middle_ns());
        EXPECT_LT(std::abs(moment->latest_ns - other->earliest_ns), kMax);
        EXPECT_LT(std::abs(moment->middle_ns() - now), kMax);
      }
    }
  }
}

}  // namespace
}  // namespace drun::control
