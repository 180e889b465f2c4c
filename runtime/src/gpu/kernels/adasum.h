// Kernels of Adasum: dot products of two vectors, always added in the same order, and the combination of the vectors.
#pragma once

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"

namespace drun::runtime::gpu {

// Adds the values of a block's threads in a fixed order; sums[0] gets the result.
DRUN_DEVICE void add_up(const Block& block, Dots* sums) {
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    block.phase([&](unsigned thread) {
      if (thread >= half) return;
      sums[thread].ab += sums[thread + half].ab;
      sums[thread].aa += sums[thread + half].aa;
      sums[thread].bb += sums[thread + half].bb;
    });
  }
}

// Dot products of kChunk elements at a time, each by one block.
template <typename T>
DRUN_DEVICE void dots(const Block& block, const DotsArguments& a) {
  DRUN_SHARED Dots sums[kThreads];
  for (u64 part = block.number(); part < a.n_parts; part += block.n_blocks()) {
    const u64 begin = part * kChunk, rest = a.count - begin, n = rest < kChunk ? rest : kChunk;
    block.phase([&](unsigned thread) {
      Dots own = {0, 0, 0};
      struct Pair {
        T x, y;
      };
      each_ahead<kSingleAhead>(
          begin + thread, begin + n, kThreads,
          [&](u64 i) {
            return Pair{at<const T>(a.a)[i], at<const T>(a.b)[i]};
          },
          [&](u64, const Pair& pair) {
            const double x = pair.x, y = pair.y;
            own.ab += x * y;
            own.aa += x * x;
            own.bb += y * y;
          });
      sums[thread] = own;
    });
    add_up(block, sums);
    block.phase([&](unsigned thread) {  // before the next part overwrites the sums
      if (thread == 0) at<Dots>(a.parts)[part] = sums[0];
    });
  }
}

// For one block.
DRUN_DEVICE void add_dots(const Block& block, const DotsArguments& a) {
  DRUN_SHARED Dots sums[kThreads];
  block.phase([&](unsigned thread) {
    Dots own = {0, 0, 0};
    for (u64 part = thread; part < a.n_parts; part += kThreads) {
      const Dots& one = at<const Dots>(a.parts)[part];
      own.ab += one.ab;
      own.aa += one.aa;
      own.bb += one.bb;
    }
    sums[thread] = own;
  });
  add_up(block, sums);
  block.last([&](unsigned thread) {
    if (thread == 0) *at<Dots>(a.dots) = sums[0];
  });
}

// The same as adasum_combine() of algorithm/adasum.cpp.
template <typename T>
DRUN_DEVICE void adasum(const Block& block, const DotsArguments& a) {
  block.last([&](unsigned thread) {
    const Dots all = *at<const Dots>(a.dots);
    // A zero vector leaves the other unchanged.
    const double of_a = all.aa > 0 ? 1 - all.ab / (2 * all.aa) : 1, of_b = all.bb > 0 ? 1 - all.ab / (2 * all.bb) : 1;
    for (u64 part = block.number(); part < a.n_parts; part += block.n_blocks()) {
      const u64 begin = part * kChunk, rest = a.count - begin, n = rest < kChunk ? rest : kChunk;
      map_pairs(thread, at<const T>(a.a) + begin, at<const T>(a.b) + begin, at<T>(a.into) + begin, n,
                [&](T x, T y) { return static_cast<T>(of_a * x + of_b * y); });
    }
  });
}

}  // namespace drun::runtime::gpu
