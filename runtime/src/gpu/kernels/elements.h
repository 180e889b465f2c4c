// Kernels over the elements of an array, in place: scale, divide, add.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"
#include "runtime/src/gpu/kernels/halves.h"

namespace drun::runtime::gpu {

// Calls visit(memory, index of the first, n) for this block's chunks of an array.
template <typename T, typename F>
DRUN_DEVICE void each_part(const Block& block, const ElementArguments& a, F visit) {
  for (u64 chunk = block.number(); chunk * kChunk < a.count; chunk += block.n_blocks()) {
    const u64 rest = a.count - chunk * kChunk;
    visit(at<T>(a.data) + chunk * kChunk, chunk * kChunk, rest < kChunk ? rest : kChunk);
  }
}

template <typename T>
DRUN_DEVICE void scale(const Block& block, const ElementArguments& a) {
  const T factor = static_cast<T>(a.factor);
  block.last([&](unsigned thread) {
    each_part<T>(block, a,
                 [&](T* data, u64, u64 n) { map(thread, data, data, n, [&](T value) { return value * factor; }); });
  });
}

template <typename Half>
DRUN_DEVICE void scale_half(const Block& block, const ElementArguments& a) {
  const float factor = static_cast<float>(a.factor);
  block.last([&](unsigned thread) {
    each_part<std::uint16_t>(block, a, [&](std::uint16_t* data, u64, u64 n) {
      map(thread, data, data, n, [&](std::uint16_t half) { return Half::narrow(Half::widen(half) * factor); });
    });
  });
}

template <typename T>
DRUN_DEVICE void divide(const Block& block, const ElementArguments& a) {
  const T divisor = static_cast<T>(a.factor);
  block.last([&](unsigned thread) {
    each_part<T>(block, a,
                 [&](T* data, u64, u64 n) { map(thread, data, data, n, [&](T value) { return value / divisor; }); });
  });
}

template <typename T>
DRUN_DEVICE void add(const Block& block, const ElementArguments& a) {
  block.last([&](unsigned thread) {
    each_part<T>(block, a, [&](T* data, u64 begin, u64 n) {
      map_pairs(thread, data, at<const T>(a.other) + begin, data, n, [](T x, T y) { return x + y; });
    });
  });
}

}  // namespace drun::runtime::gpu
