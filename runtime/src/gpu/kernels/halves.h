// Conversion of halves: on a device by instructions, to nearest, ties to even; on the host by the functions of the
// training layer. Both give the same bits, except for those of a NaN.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "runtime/include/drun/training/half.hpp"
#endif

namespace drun::runtime::gpu {

template <typename T>
struct Largest;
template <>
struct Largest<float> {
  static constexpr float kValue = 0x1.fffffep127f;
};
template <>
struct Largest<double> {
  static constexpr double kValue = 0x1.fffffffffffffp1023;
};

#if defined(__CUDACC__)

struct Float16 {
  static DRUN_DEVICE std::uint16_t narrow(float value) { return __half_as_ushort(__float2half_rn(value)); }
  static DRUN_DEVICE std::uint16_t narrow(double value) { return __half_as_ushort(__double2half(value)); }
  static DRUN_DEVICE float widen(std::uint16_t half) { return __half2float(__ushort_as_half(half)); }
};
struct Bfloat16 {
  static DRUN_DEVICE std::uint16_t narrow(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
  static DRUN_DEVICE std::uint16_t narrow(double value) { return __bfloat16_as_ushort(__double2bfloat16(value)); }
  static DRUN_DEVICE float widen(std::uint16_t half) { return __bfloat162float(__ushort_as_bfloat16(half)); }
};

#else

template <typename Half>
struct HalfOfHost {
  template <typename T>
  static std::uint16_t narrow(T value) {
    return Half::narrow(training::for_rounding(value));
  }
  static float widen(std::uint16_t half) { return Half::widen(half); }
};
using Float16 = HalfOfHost<training::Float16>;
using Bfloat16 = HalfOfHost<training::Bfloat16>;

#endif

}  // namespace drun::runtime::gpu
