#include "launcher/report/clock_track.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1000 * kMs;

// Adds a round trip of 2 * half_ns around the host's time `host_ns`, when the host's clock is `ahead` of drun's.
void add(ClockTrack& track, control::ClockAlignment& alignment, std::int64_t host_ns, std::int64_t ahead,
         std::int64_t half_ns = kMs) {
  const std::int64_t ours = host_ns - ahead;
  alignment.add(ours - half_ns, ours + half_ns, host_ns);
  track.add(alignment);
}

TEST(ClockTrack, WithoutAnAlignmentTimesAreAsTheyAre) {
  ClockTrack track;
  control::ClockAlignment nothing;
  track.add(nothing);
  EXPECT_TRUE(track.empty());
  EXPECT_EQ(track.ours(7), 7);
  EXPECT_EQ(track.uncertainty_ns(), 0);
}

TEST(ClockTrack, OneAlignmentServesAllTimes) {
  ClockTrack track;
  control::ClockAlignment alignment;
  add(track, alignment, 100 * kSecond, 90 * kSecond);
  EXPECT_EQ(track.ours(100 * kSecond), 10 * kSecond);
  EXPECT_EQ(track.ours(101 * kSecond), 11 * kSecond);
  EXPECT_EQ(track.ours(99 * kSecond), 9 * kSecond);
  EXPECT_EQ(track.uncertainty_ns(), kMs);
}

TEST(ClockTrack, BetweenTwoAlignmentsTheDriftIsSpread) {
  ClockTrack track;
  control::ClockAlignment alignment;
  // A drift of 50 ppm is 5 ms in 100 s. The later alignment is taken because the error of the earlier one has grown
  // beyond it.
  add(track, alignment, 100 * kSecond, 0);
  add(track, alignment, 200 * kSecond, 5 * kMs);
  EXPECT_EQ(track.ours(100 * kSecond), 100 * kSecond);
  EXPECT_NEAR(static_cast<double>(track.ours(150 * kSecond)), 150.0 * kSecond - 2.5 * kMs, 10);
  EXPECT_EQ(track.ours(200 * kSecond), 200 * kSecond - 5 * kMs);
  EXPECT_EQ(track.ours(300 * kSecond), 300 * kSecond - 5 * kMs);
}

TEST(ClockTrack, WhatWasInOrderStaysSo) {
  ClockTrack track;
  control::ClockAlignment alignment;
  // The first round trips come 100 us apart, and each is more exact than the one before.
  for (int i = 0; i < 8; ++i)
    add(track, alignment, kSecond + i * 100'000, i % 2 == 0 ? 900'000 : 0, 1'000'000 - i * 1000);
  add(track, alignment, 100 * kSecond, 3 * kMs, 10'000);
  std::int64_t last = 0;
  for (std::int64_t t = kSecond - kMs; t < kSecond + 2 * kMs; t += 1000) {
    EXPECT_GT(track.ours(t), last);
    last = track.ours(t);
  }
}

}  // namespace
}  // namespace drun::launcher
