// Kernels that change the elements of an array at given indices.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"

namespace drun::runtime::gpu {

// The indices of one call are distinct, so no two threads change the same element.
template <typename T, typename Index, typename F>
DRUN_DEVICE void scatter(const Block& block, const ScatterArguments& a, F change) {
  block.last([&](unsigned thread) {
    const u64 stride = static_cast<u64>(block.n_blocks()) * kThreads;
    u64 n_bad = 0;
    for (u64 i = static_cast<u64>(block.number()) * kThreads + thread; i < a.n; i += stride) {
      const u64 index = at<const Index>(a.indices)[i];
      if (index < a.count) {
        change(at<T>(a.data)[index], i);
      } else {
        ++n_bad;
      }
    }
    if (n_bad > 0) add_to(at<u64>(a.n_bad), n_bad);
  });
}

template <typename T, typename Index>
DRUN_DEVICE void scatter_add(const Block& block, const ScatterArguments& a) {
  scatter<T, Index>(block, a, [&](T& element, u64 i) { element += at<const T>(a.values)[i]; });
}

template <typename T, typename Index>
DRUN_DEVICE void scatter_zero(const Block& block, const ScatterArguments& a) {
  scatter<T, Index>(block, a, [](T& element, u64) { element = 0; });
}

}  // namespace drun::runtime::gpu
