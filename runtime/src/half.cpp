#include "runtime/src/half.h"

#include <cstdint>
#include <cstring>

namespace drun::runtime {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// All cases are computed and one is chosen, so that compilers can make vector code of the loops. No step computes with
// a subnormal f32, which a program may have told its processor to take for zero.
struct F16 {
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
    // A carry out of the mantissa is right: it makes the exponent one larger.
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // The last bit of numbers from 0.5 to 1 is 2^-24, as that of subnormal halves is: the addition rounds.
    const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
    result = magnitude >= (143u << 23) ? 0x7c00u : result;  // 2^16 and more
    result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result;
    return static_cast<std::uint16_t>(result | sign);
  }
};

struct Bf16 {
  static float widen(std::uint16_t half) { return float_of(static_cast<std::uint32_t>(half) << 16); }
  static std::uint16_t narrow(float value) {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded);
  }
};

template <typename Half>
void widen_all(const char* from, float* into, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half;
    std::memcpy(&half, from + 2 * i, sizeof half);
    into[i] = Half::widen(half);
  }
}

template <typename Half>
void narrow_all(const float* from, char* into, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t half = Half::narrow(from[i]);
    std::memcpy(into + 2 * i, &half, sizeof half);
  }
}

}  // namespace

void widen(const void* from, drun_dtype dtype, float* into, std::size_t count) {
  const char* bytes = static_cast<const char*>(from);
  dtype == DRUN_FLOAT16 ? widen_all<F16>(bytes, into, count) : widen_all<Bf16>(bytes, into, count);
}

void narrow(const float* from, void* into, drun_dtype dtype, std::size_t count) {
  char* bytes = static_cast<char*>(into);
  dtype == DRUN_FLOAT16 ? narrow_all<F16>(from, bytes, count) : narrow_all<Bf16>(from, bytes, count);
}

}  // namespace drun::runtime
