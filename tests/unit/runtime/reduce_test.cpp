#include "runtime/src/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace drun::runtime {
namespace {

template <typename T>
std::vector<T> reduced(std::vector<T> a, const std::vector<T>& b, drun_dtype dtype, drun_op op, int size = 2) {
  accumulate(a.data(), b.data(), a.size(), dtype, op);
  finish(a.data(), a.size(), dtype, op, size);
  return a;
}

TEST(Reduce, ComputesEveryOperation) {
  const std::vector<double> a{1.5, -2, 8}, b{2, 5, -3};
  EXPECT_EQ(reduced(a, b, DRUN_FLOAT64, DRUN_SUM), (std::vector<double>{3.5, 3, 5}));
  EXPECT_EQ(reduced(a, b, DRUN_FLOAT64, DRUN_PROD), (std::vector<double>{3, -10, -24}));
  EXPECT_EQ(reduced(a, b, DRUN_FLOAT64, DRUN_MIN), (std::vector<double>{1.5, -2, -3}));
  EXPECT_EQ(reduced(a, b, DRUN_FLOAT64, DRUN_MAX), (std::vector<double>{2, 5, 8}));
  EXPECT_EQ(reduced(a, b, DRUN_FLOAT64, DRUN_AVG), (std::vector<double>{1.75, 1.5, 2.5}));
}

TEST(Reduce, WrapsIntegers) {
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(reduced<std::int32_t>({kMax}, {1}, DRUN_INT32, DRUN_SUM), std::vector<std::int32_t>{kMin});
  EXPECT_EQ(reduced<std::int8_t>({127}, {1}, DRUN_INT8, DRUN_SUM), std::vector<std::int8_t>{-128});
  EXPECT_EQ(reduced<std::uint8_t>({200}, {2}, DRUN_UINT8, DRUN_PROD), std::vector<std::uint8_t>{144});
  EXPECT_EQ(reduced<std::int64_t>({std::numeric_limits<std::int64_t>::max()}, {2}, DRUN_INT64, DRUN_PROD),
            std::vector<std::int64_t>{-2});
}

TEST(Reduce, TruncatesIntegerAverages) {
  EXPECT_EQ(reduced<std::int32_t>({-4}, {-3}, DRUN_INT32, DRUN_AVG), std::vector<std::int32_t>{-3});
  EXPECT_EQ(reduced<std::uint64_t>({4}, {3}, DRUN_UINT64, DRUN_AVG), std::vector<std::uint64_t>{3});
}

TEST(Reduce, HandsOnNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto op : {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX, DRUN_AVG}) {
    const auto result = reduced<float>({nan, 1}, {1, nan}, DRUN_FLOAT32, op);
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1])) << op;
  }
}

TEST(Reduce, NeedsNoAlignment) {
  std::vector<char> bytes(1 + 3 * sizeof(double));
  const double ones[3] = {1, 1, 1};
  std::copy_n(reinterpret_cast<const char*>(ones), sizeof ones, bytes.data() + 1);
  accumulate(bytes.data() + 1, ones, 3, DRUN_FLOAT64, DRUN_SUM);
  double result[3];
  std::copy_n(bytes.data() + 1, sizeof result, reinterpret_cast<char*>(result));
  EXPECT_EQ(result[2], 2.0);
}

}  // namespace
}  // namespace drun::runtime
