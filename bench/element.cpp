#include "bench/element.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace drun::bench {

namespace {

template <typename T>
void store(T value, void* into) {
  std::memcpy(into, &value, sizeof value);
}

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// IEEE binary16: 5 bits of exponent, 10 of fraction.
std::uint16_t half_bits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  // 1024 to 2048 for normal numbers; rounding up to 2048 carries into the exponent, as it should.
  const auto digits = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + digits));
}

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value;
  if (exponent == 31) {
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

// The upper half of an f32.
std::uint16_t bfloat_bits(double value) {
  const auto bits = [&] {
    const auto narrow = static_cast<float>(value);
    return load<std::uint32_t>(&narrow);
  }();
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double bfloat_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  return load<float>(&wide);
}

}  // namespace

void encode(double value, drun_dtype dtype, void* into) {
  switch (dtype) {
    case DRUN_INT8:
      return store(static_cast<std::int8_t>(value), into);
    case DRUN_UINT8:
      return store(static_cast<std::uint8_t>(value), into);
    case DRUN_INT32:
      return store(static_cast<std::int32_t>(value), into);
    case DRUN_UINT32:
      return store(static_cast<std::uint32_t>(value), into);
    case DRUN_INT64:
      return store(static_cast<std::int64_t>(value), into);
    case DRUN_UINT64:
      return store(static_cast<std::uint64_t>(value), into);
    case DRUN_FLOAT16:
      return store(half_bits(value), into);
    case DRUN_BFLOAT16:
      return store(bfloat_bits(value), into);
    case DRUN_FLOAT32:
      return store(static_cast<float>(value), into);
    case DRUN_FLOAT64:
      return store(value, into);
  }
}

double decode(const void* from, drun_dtype dtype) {
  switch (dtype) {
    case DRUN_INT8:
      return load<std::int8_t>(from);
    case DRUN_UINT8:
      return load<std::uint8_t>(from);
    case DRUN_INT32:
      return load<std::int32_t>(from);
    case DRUN_UINT32:
      return load<std::uint32_t>(from);
    case DRUN_INT64:
      return static_cast<double>(load<std::int64_t>(from));
    case DRUN_UINT64:
      return static_cast<double>(load<std::uint64_t>(from));
    case DRUN_FLOAT16:
      return half_value(load<std::uint16_t>(from));
    case DRUN_BFLOAT16:
      return bfloat_value(load<std::uint16_t>(from));
    case DRUN_FLOAT32:
      return load<float>(from);
    case DRUN_FLOAT64:
      return load<double>(from);
  }
  return 0;
}

bool is_integer(drun_dtype dtype) { return dtype <= DRUN_UINT64; }

bool is_unsigned(drun_dtype dtype) { return dtype == DRUN_UINT8 || dtype == DRUN_UINT32 || dtype == DRUN_UINT64; }

double wrapped(double value, drun_dtype dtype) {
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  switch (dtype) {
    case DRUN_INT8:
      return static_cast<std::int8_t>(bits);
    case DRUN_UINT8:
      return static_cast<std::uint8_t>(bits);
    case DRUN_INT32:
      return static_cast<std::int32_t>(bits);
    case DRUN_UINT32:
      return static_cast<std::uint32_t>(bits);
    default:
      return value;
  }
}

double unit_roundoff(drun_dtype dtype) {
  switch (dtype) {
    case DRUN_FLOAT16:
      return 0x1p-11;
    case DRUN_BFLOAT16:
      return 0x1p-8;
    case DRUN_FLOAT32:
      return 0x1p-24;
    case DRUN_FLOAT64:
      return 0x1p-53;
    default:
      return 0;
  }
}

}  // namespace drun::bench
