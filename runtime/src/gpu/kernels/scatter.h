// Kernels that change the elements of an array at given indices.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"

namespace drun::runtime::gpu {

// The indices of one call are distinct, so no two threads change the same element.
// change(element, value) gets value_of(i).
template <typename T, typename Index, typename ValueOf, typename Change>
DRUN_DEVICE void scatter(const Block& block, const ScatterArguments& a, ValueOf value_of, Change change) {
  struct Loaded {
    Index index;
    T value;
  };
  block.last([&](unsigned thread) {
    const u64 stride = static_cast<u64>(block.n_blocks()) * kThreads;
    u64 n_bad = 0;
    each_ahead<kSingleAhead>(
        static_cast<u64>(block.number()) * kThreads + thread, a.n, stride,
        [&](u64 i) {
          return Loaded{at<const Index>(a.indices)[i], value_of(i)};
        },
        [&](u64, const Loaded& loaded) {
          if (loaded.index < a.count) {
            change(at<T>(a.data)[loaded.index], loaded.value);
          } else {
            ++n_bad;
          }
        });
    if (n_bad > 0) add_to(at<u64>(a.n_bad), n_bad);
  });
}

template <typename T, typename Index>
DRUN_DEVICE void scatter_add(const Block& block, const ScatterArguments& a) {
  scatter<T, Index>(
      block, a, [&](u64 i) { return at<const T>(a.values)[i]; }, [](T& element, T value) { element += value; });
}

template <typename T, typename Index>
DRUN_DEVICE void scatter_zero(const Block& block, const ScatterArguments& a) {
  scatter<T, Index>(
      block, a, [](u64) { return T{0}; }, [](T& element, T value) { element = value; });
}

}  // namespace drun::runtime::gpu
