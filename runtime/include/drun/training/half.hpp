// Conversions to halves, f16 (IEEE binary16) and bf16, by rounding to nearest, ties to even, and back, which is exact.
// Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "drun/drun.h"

namespace drun {
inline namespace v0 {
namespace training {

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to f32 so that rounding the result to a half gives the same as rounding `value` once: a value between two f32
// becomes the one of them whose last bit is set. Precondition: `value` is in the range of f32, infinite or NaN.
inline float for_rounding(float value) { return value; }
inline float for_rounding(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  const std::uint32_t bits = bits_of(nearest);
  const bool is_larger = std::fabs(back) > std::fabs(value);
  return float_of((is_larger ? bits - 1 : bits) | 1u);
}

// Computes all cases and chooses one, so that compilers can vectorize loops. No step computes with a subnormal f32,
// which a program may have told its processor to treat as zero.
struct Float16 {
  static constexpr drun_dtype kDtype = DRUN_FLOAT16;
  static constexpr double kLargest = 65504;

  static float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    const std::uint32_t normal = (magnitude << 13) + (112u << 23);  // the bias is 15 here and 127 there
    const std::uint32_t special = (magnitude << 13) | 0x7f800000u;  // infinite or NaN
    const std::uint32_t subnormal = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
    std::uint32_t result = magnitude < 0x0400u ? subnormal : normal;
    result = magnitude >= 0x7c00u ? special : result;
    return float_of(result | sign);
  }
  static std::uint16_t narrow(float value) {
    const std::uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    // A carry out of the mantissa is correct: it increments the exponent.
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // The last bit of numbers from 0.5 to 1 is 2^-24, as that of subnormal halves is, so the addition rounds.
    const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
    result = magnitude >= (143u << 23) ? 0x7c00u : result;  // 2^16 and more
    result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result;
    return static_cast<std::uint16_t>(result | sign);
  }
};

struct Bfloat16 {
  static constexpr drun_dtype kDtype = DRUN_BFLOAT16;
  static constexpr double kLargest = 0x1.fep127;

  static float widen(std::uint16_t half) { return float_of(static_cast<std::uint32_t>(half) << 16); }
  static std::uint16_t narrow(float value) {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded);
  }
};

// The largest half whose n-fold sum is still finite.
template <typename Half>
float largest_of(int n) {
  const double quotient = Half::kLargest / n;
  std::uint16_t half = Half::narrow(for_rounding(quotient));
  if (static_cast<double>(Half::widen(half)) > quotient) --half;
  return Half::widen(half);
}

}  // namespace training
}  // namespace v0
}  // namespace drun
