#include "bench/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "bench/settings.h"
#include "runtime/src/half.h"

namespace drun::bench {
namespace {

std::vector<drun_dtype> all_dtypes() { return *parse_dtypes("all"); }

TEST(BenchElement, SmallIntegersSurviveInEveryType) {
  for (const auto dtype : all_dtypes()) {
    for (int value = is_unsigned(dtype) ? 0 : -49; value <= 49; ++value) {
      char bytes[8] = {};
      encode(value, dtype, bytes);
      EXPECT_EQ(decode(bytes, dtype), value) << dtype_name(dtype);
    }
  }
}

// Compares all bit patterns of both half types with libdrun's conversions, which are a separate implementation.
TEST(BenchElement, HalvesAreThoseOfLibdrun) {
  for (const auto dtype : {DRUN_FLOAT16, DRUN_BFLOAT16}) {
    for (std::uint32_t i = 0; i <= 0xffff; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      float wide;
      runtime::widen(&bits, dtype, &wide, 1);
      const double value = decode(&bits, dtype);
      if (std::isnan(wide)) {
        EXPECT_TRUE(std::isnan(value));
        continue;
      }
      ASSERT_EQ(value, static_cast<double>(wide)) << i;
      std::uint16_t back = 0;
      encode(value, dtype, &back);
      ASSERT_EQ(back, bits);
    }
  }
}

TEST(BenchElement, HalvesAreRoundedToNearestEven) {
  for (const auto dtype : {DRUN_FLOAT16, DRUN_BFLOAT16}) {
    for (float value = 1e-9f; value < 1e6f; value *= 1.0137f) {
      std::uint16_t own = 0, theirs = 0;
      encode(value, dtype, &own);
      runtime::narrow(&value, &theirs, dtype, 1);
      ASSERT_EQ(own, theirs) << value;
    }
  }
}

TEST(BenchElement, IntegersWrap) {
  EXPECT_EQ(wrapped(130, DRUN_INT8), -126);
  EXPECT_EQ(wrapped(-1, DRUN_INT8), -1);
  EXPECT_EQ(wrapped(257, DRUN_UINT8), 1);
  EXPECT_EQ(wrapped(2147483648.0, DRUN_INT32), -2147483648.0);
  EXPECT_EQ(wrapped(1000, DRUN_INT64), 1000);
}

}  // namespace
}  // namespace drun::bench
