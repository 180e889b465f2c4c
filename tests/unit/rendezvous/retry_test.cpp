#include "rendezvous/retry.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;

TEST(Retry, PausesGrowToAMaximumAndAreSpread) {
  for (int n_failed = 1; n_failed < 100; ++n_failed) {
    const auto whole = std::min(50ms * (1 << std::min(n_failed - 1, 10)), 2000ms);
    EXPECT_EQ(retry_pause(n_failed, 0), whole / 2);
    const auto half = static_cast<std::uint32_t>(whole.count() / 2);
    EXPECT_EQ(retry_pause(n_failed, half), whole);
    EXPECT_EQ(retry_pause(n_failed, half + 1), whole / 2);
    for (std::uint32_t random = 0; random < 5000; random += 7) {
      EXPECT_GE(retry_pause(n_failed, random), whole / 2);
      EXPECT_LE(retry_pause(n_failed, random), whole);
    }
  }
}

}  // namespace
}  // namespace drun::rendezvous
