#include "runtime/src/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace drun::runtime {
namespace {

struct Format {
  drun_dtype dtype;
  int mantissa_bits, bias;
  const char* name;
};
constexpr Format kFormats[] = {{DRUN_FLOAT16, 10, 15, "f16"}, {DRUN_BFLOAT16, 7, 127, "bf16"}};

// The value by the definition of the format; NaN for NaN.
double value_of(const Format& format, std::uint16_t half) {
  const int exponent_bits = 15 - format.mantissa_bits;
  const int exponent = (half >> format.mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = half & ((1 << format.mantissa_bits) - 1);
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - format.bias - format.mantissa_bits);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

float widened(drun_dtype dtype, std::uint16_t half) {
  float result = 0;
  widen(&half, dtype, &result, 1);
  return result;
}
std::uint16_t narrowed(drun_dtype dtype, float value) {
  std::uint16_t result = 0;
  narrow(&value, &result, dtype, 1);
  return result;
}

class Half : public ::testing::TestWithParam<Format> {};

TEST_P(Half, EveryValueWidensExactlyAndComesBack) {
  for (unsigned half = 0; half < 0x10000; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const double expected = value_of(GetParam(), bits);
    const float value = widened(GetParam().dtype, bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << half;
      EXPECT_TRUE(std::isnan(value_of(GetParam(), narrowed(GetParam().dtype, value)))) << half;
      continue;
    }
    EXPECT_EQ(value, expected) << half;
    EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0) << half;
    EXPECT_EQ(narrowed(GetParam().dtype, value), bits) << half;
  }
}

TEST_P(Half, RoundsToNearestEven) {
  // Between two neighbors the middle is rounded to the even one, and a value beside the middle to the nearer one.
  const unsigned infinity = static_cast<unsigned>((1 << (15 - GetParam().mantissa_bits)) - 1)
                            << GetParam().mantissa_bits;
  for (unsigned low = 0; low < infinity; ++low) {
    const double below = value_of(GetParam(), static_cast<std::uint16_t>(low));
    const double step =
        low == 0 ? value_of(GetParam(), 1) : below - value_of(GetParam(), static_cast<std::uint16_t>(low - 1));
    // The largest number is followed by the next one of an unlimited range; at a power of two the step doubles.
    const double above = low + 1 == infinity ? below + step : value_of(GetParam(), static_cast<std::uint16_t>(low + 1));
    const float middle = static_cast<float>(below / 2 + above / 2);
    const unsigned even = low + (low & 1);
    for (const float sign : {1.0f, -1.0f}) {
      const unsigned bit = sign < 0 ? 0x8000 : 0;
      EXPECT_EQ(narrowed(GetParam().dtype, sign * middle), even | bit) << low;
      EXPECT_EQ(narrowed(GetParam().dtype, sign * std::nextafter(middle, 0.0f)), low | bit) << low;
      EXPECT_EQ(narrowed(GetParam().dtype, sign * std::nextafter(middle, std::numeric_limits<float>::infinity())),
                (low + 1) | bit)
          << low;
    }
  }
  for (const float large : {std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(narrowed(GetParam().dtype, large), infinity);
    EXPECT_EQ(narrowed(GetParam().dtype, -large), infinity | 0x8000);
  }
}

TEST_P(Half, KeepsNaNWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7f801000u}) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    EXPECT_TRUE(std::isnan(value_of(GetParam(), narrowed(GetParam().dtype, value)))) << bits;
  }
}

TEST_P(Half, NeedsNoAlignmentAndKeepsToItsMemory) {
  std::vector<char> bytes(2 * 37 + 2, 'x');
  std::vector<float> values(37), back(38, -7.0f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 18;
  narrow(values.data(), bytes.data() + 1, GetParam().dtype, values.size());
  EXPECT_EQ(bytes.front(), 'x');
  EXPECT_EQ(bytes.back(), 'x');
  widen(bytes.data() + 1, GetParam().dtype, back.data(), values.size());
  values.push_back(-7.0f);
  EXPECT_EQ(back, values);
}

INSTANTIATE_TEST_SUITE_P(Formats, Half, ::testing::ValuesIn(kFormats),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace drun::runtime
