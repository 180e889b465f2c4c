// Magnitudes of floating-point values, and their bits, which are in the same order.
#pragma once

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"

namespace drun::runtime::gpu {

template <typename T>
DRUN_DEVICE T absolute(T value) {
  return value < 0 ? -value : value;  // the sign of a zero does not matter here, and NaN stays NaN
}

// As training::magnitude, but the value for all NaN, the largest, has no sign bit either.
DRUN_DEVICE u32 magnitude(float value) {
  union {
    float value;
    u32 bits;
  } as = {value};
  return value != value ? 0x7fffffffu : as.bits & 0x7fffffffu;
}
DRUN_DEVICE u64 magnitude(double value) {
  union {
    double value;
    u64 bits;
  } as = {value};
  return value != value ? 0x7fffffffffffffffull : as.bits & 0x7fffffffffffffffull;
}

template <typename T>
using BitsOf = decltype(magnitude(T{}));

}  // namespace drun::runtime::gpu
