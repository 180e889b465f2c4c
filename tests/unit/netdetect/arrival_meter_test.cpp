#include "netdetect/arrival_meter.h"

#include <gtest/gtest.h>

namespace drun::netdetect {
namespace {

using std::chrono::milliseconds;

// A measuring window from 25 ms to 100 ms.
struct Window {
  Deadline zero{};
  ArrivalMeter meter{zero + milliseconds(25), zero + milliseconds(100)};
  void add(int ms, std::size_t n_bytes) { meter.add(zero + milliseconds(ms), n_bytes); }
};

TEST(ArrivalMeter, CountsWhatArrivesInTheWindow) {
  Window w;
  for (int ms = 1; ms <= 150; ++ms) w.add(ms, 1250);
  EXPECT_NEAR(w.meter.bits_per_second(), 10e6, 1);
  EXPECT_NEAR(w.meter.seconds(), 0.075, 1e-9);
}

TEST(ArrivalMeter, LargePiecesAtTheEdgesDoNotMatter) {
  // 10 Mb/s in pieces that take 20 ms: at 10, 30, 50, 70 and 90 ms.
  Window w;
  for (int ms = 10; ms < 150; ms += 20) w.add(ms, 25000);
  EXPECT_NEAR(w.meter.bits_per_second(), 10e6, 1);
}

TEST(ArrivalMeter, AStallAtTheEndCounts) {
  Window w;
  for (int ms = 1; ms <= 50; ++ms) w.add(ms, 1250);
  EXPECT_NEAR(w.meter.bits_per_second(), 10e6 / 3, 1);
}

TEST(ArrivalMeter, AStallAtTheBeginCounts) {
  Window w;
  w.add(5, 1000);
  w.add(95, 9000);
  EXPECT_NEAR(w.meter.bits_per_second(), 8 * 9000 / 0.090, 1);
}

TEST(ArrivalMeter, NothingIsZero) {
  Window w;
  w.add(10, 1000);
  w.add(101, 1000);
  EXPECT_EQ(w.meter.bits_per_second(), 0);
  EXPECT_NEAR(w.meter.seconds(), 0.075, 1e-9);
}

}  // namespace
}  // namespace drun::netdetect
