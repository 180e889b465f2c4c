// Halves, compared with an oracle that searches all of them for the nearest.
#include "drun/training/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace drun::training {
namespace {

template <typename Half>
class Halves : public ::testing::Test {};
using Kinds = ::testing::Types<Float16, Bfloat16>;
TYPED_TEST_SUITE(Halves, Kinds);

constexpr std::uint16_t kSign = 0x8000;

// Number of finite, non-negative halves. Their bit patterns are 0, 1, 2, ... in ascending order of value.
template <typename Half>
std::uint16_t n_finite() {
  return Half::kDtype == DRUN_FLOAT16 ? 0x7c00 : 0x7f80;
}

// Precondition: 0 <= value, finite.
template <typename Half>
std::uint16_t nearest(double value) {
  const std::uint16_t n = n_finite<Half>();
  std::uint16_t below = 0, above = n;  // the first that is larger; n: infinity
  while (above - below > 1) {
    const auto middle = static_cast<std::uint16_t>((below + above) / 2);
    (static_cast<double>(Half::widen(middle)) <= value ? below : above) = middle;
  }
  const double low = Half::widen(below);
  // Infinity counts as the value that would follow the largest.
  const double high = above == n ? 2 * low - Half::widen(static_cast<std::uint16_t>(below - 1)) : Half::widen(above);
  if (value - low != high - value) return value - low < high - value ? below : above;
  return below % 2 == 0 ? below : above;
}

TYPED_TEST(Halves, ComeBackAsTheyWere) {
  using Half = TypeParam;
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float wide = Half::widen(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(Half::widen(Half::narrow(wide)))) << i;
    } else {
      EXPECT_EQ(Half::narrow(wide), half) << i;
    }
  }
}

TYPED_TEST(Halves, AreTheNearestOnesTiesToEven) {
  using Half = TypeParam;
  std::mt19937_64 random(1);
  std::vector<double> values{0, 1e-300, 0x1p-24, 0x1p-25, 0x1.8p-25, 65519.999, 65520, 65504, 65536, 1e5};
  std::uniform_int_distribution<int> any(0, n_finite<Half>() - 2);
  for (int i = 0; i < 20000; ++i) {
    const auto half = static_cast<std::uint16_t>(any(random));
    const double low = Half::widen(half), high = Half::widen(static_cast<std::uint16_t>(half + 1));
    const double middle = low + (high - low) / 2;  // exact
    // Doubles whose last bits beside the tie would be lost in an f32.
    for (const double value : {middle, std::nextafter(middle, low), std::nextafter(middle, high)}) {
      values.push_back(value);
    }
    values.push_back(low + (high - low) * std::generate_canonical<double, 53>(random));
  }
  for (const double value : values) {
    if (value > std::numeric_limits<float>::max()) continue;
    const auto expected = nearest<Half>(value);
    EXPECT_EQ(Half::narrow(for_rounding(value)), expected) << value;
    EXPECT_EQ(Half::narrow(for_rounding(-value)), expected | kSign) << value;
  }
}

TYPED_TEST(Halves, HaveALargestValueOfWhichNAreFinite) {
  using Half = TypeParam;
  for (const int n : {1, 2, 3, 7, 48, 1000, 100000}) {
    const double largest = largest_of<Half>(n);
    EXPECT_LE(largest * n, Half::kLargest) << n;
    const auto next = static_cast<std::uint16_t>(Half::narrow(static_cast<float>(largest)) + 1);
    EXPECT_TRUE(!std::isfinite(Half::widen(next)) || static_cast<double>(Half::widen(next)) * n > Half::kLargest) << n;
  }
}

TEST(ForRounding, KeepsWhatAnF32CanSay) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const double value : {0.0, 1.0, -2.5, 65504.0, static_cast<double>(tiny)}) {
    EXPECT_EQ(static_cast<double>(for_rounding(value)), value);
  }
  EXPECT_EQ(for_rounding(1e-300), tiny) << "not zero: the last bit is set";
  EXPECT_EQ(for_rounding(-1e-300), -tiny);
  EXPECT_TRUE(std::isnan(for_rounding(std::nan(""))));
  EXPECT_TRUE(std::isinf(for_rounding(std::numeric_limits<double>::infinity())));
}

}  // namespace
}  // namespace drun::training
