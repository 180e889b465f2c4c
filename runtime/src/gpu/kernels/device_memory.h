// Access to memory of the device for all kernels: by addresses, and in loops over elements.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"

namespace drun::runtime::gpu {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <typename T>
DRUN_DEVICE T* at(u64 address) {
  return reinterpret_cast<T*>(address);
}

template <typename T, unsigned n>
struct alignas(n * sizeof(T)) Several {
  T values[n];
};

// This thread's part of into[i] = f(from[i]). Moves 16 bytes of the wider type at a time if both are aligned for that.
template <typename From, typename Into, typename F>
DRUN_DEVICE void map(unsigned thread, const From* from, Into* into, u64 n, F f) {
  constexpr unsigned kWidth = 16 / (sizeof(From) > sizeof(Into) ? sizeof(From) : sizeof(Into));
  using Read = Several<From, kWidth>;
  using Written = Several<Into, kWidth>;
  const bool is_aligned =
      reinterpret_cast<u64>(from) % alignof(Read) == 0 && reinterpret_cast<u64>(into) % alignof(Written) == 0;
  const u64 n_whole = is_aligned ? n / kWidth : 0;
  DRUN_UNROLL for (u64 i = thread; i < n_whole; i += kThreads) {
    const Read read = reinterpret_cast<const Read*>(from)[i];
    Written written;
    for (unsigned k = 0; k < kWidth; ++k) written.values[k] = f(read.values[k]);
    reinterpret_cast<Written*>(into)[i] = written;
  }
  for (u64 i = n_whole * kWidth + thread; i < n; i += kThreads) into[i] = f(from[i]);
}

}  // namespace drun::runtime::gpu
