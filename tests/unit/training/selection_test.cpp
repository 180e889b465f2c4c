// The selected elements, compared with those found by sorting.
#include "drun/training/selection.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace drun::training {
namespace {

using Indices = std::vector<std::uint32_t>;

template <typename T>
Indices top(const std::vector<T>& values, std::size_t k) {
  Indices chosen{99};
  std::vector<decltype(magnitude(T{}))> scratch;
  select_top_k(values.data(), values.size(), k, chosen, scratch);
  return chosen;
}

template <typename T>
Indices above(const std::vector<T>& values, double threshold) {
  Indices chosen{99};
  select_threshold(values.data(), values.size(), threshold, chosen);
  return chosen;
}

template <typename T>
class Selecting : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Selecting, Types);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TYPED_TEST(Selecting, TellsSmallNumbersApart) {
  EXPECT_EQ(top<TypeParam>({0.1f, 0.9f, -0.95f, 0.2f}, 2), (Indices{1, 2}));
  const auto least = std::numeric_limits<TypeParam>::denorm_min();
  EXPECT_EQ(top<TypeParam>({least, 3 * least, -2 * least, 0}, 2), (Indices{1, 2}));
}

TYPED_TEST(Selecting, TakesTheFirstOfEqualOnes) {
  EXPECT_EQ(top<TypeParam>({1, -1, 1, 2, -1}, 3), (Indices{0, 1, 3}));
  EXPECT_EQ(top<TypeParam>({0, -0.0f, 0, 0}, 2), (Indices{0, 1}));
}

TYPED_TEST(Selecting, TakesExactlyAsManyAsAsked) {
  EXPECT_EQ(top<TypeParam>({1, 2, 3}, 0), Indices{});
  EXPECT_EQ(top<TypeParam>({1, 2, 3}, 3), (Indices{0, 1, 2}));
  EXPECT_EQ(top<TypeParam>({1, 2, 3}, 7), (Indices{0, 1, 2}));
  EXPECT_EQ(top<TypeParam>({}, 2), Indices{});
  EXPECT_EQ(top<TypeParam>({0, 0, 0}, 1), Indices{0});
}

TYPED_TEST(Selecting, NanIsLargest) {
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const auto infinity = static_cast<TypeParam>(kInfinity);
  EXPECT_EQ(top<TypeParam>({1, infinity, nan, -nan, 5}, 1), Indices{2});
  EXPECT_EQ(top<TypeParam>({1, -infinity, nan, -nan, 5}, 3), (Indices{1, 2, 3}));
  EXPECT_EQ(above<TypeParam>({1, infinity, nan, 5, -infinity}, kInfinity), (Indices{1, 2, 4}));
}

TYPED_TEST(Selecting, OfRandomNumbersIsWhatSortingGives) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<TypeParam> values(random() % 200);
    for (auto& value : values) {
      // Few different values, so that there are ties.
      value = std::ldexp(static_cast<TypeParam>(static_cast<int>(random() % 9) - 4), -static_cast<int>(random() % 5));
    }
    const std::size_t k = values.empty() ? 0 : random() % (values.size() + 1);
    Indices order(values.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return std::fabs(values[a]) > std::fabs(values[b]); });
    order.resize(k);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(top(values, k), order);

    const double threshold = 0.25 * static_cast<double>(random() % 5);
    Indices expected;
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      if (std::fabs(values[i]) >= threshold) expected.push_back(i);
    }
    EXPECT_EQ(above(values, threshold), expected);
  }
}

TEST(TopKCount, IsTheShareRoundedUp) {
  EXPECT_EQ(top_k_count(0, 0.5), 0u);
  EXPECT_EQ(top_k_count(100, 0), 0u);
  EXPECT_EQ(top_k_count(100, 0.01), 1u);
  EXPECT_EQ(top_k_count(101, 0.01), 2u);
  EXPECT_EQ(top_k_count(100, 0.07), 7u) << "0.07 * 100 is 7.000000000000001";
  EXPECT_EQ(top_k_count(3, 0.01), 1u);
  EXPECT_EQ(top_k_count(10, 1), 10u);
  EXPECT_EQ(top_k_count(std::size_t{1} << 40, 0.5), std::size_t{1} << 39) << "no 32-bit numbers in between";
}

}  // namespace
}  // namespace drun::training
