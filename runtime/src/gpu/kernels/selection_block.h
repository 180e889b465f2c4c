// The steps that a whole block takes together in the kernels of a selection: sums over its threads, and whether it is
// the last one.
#pragma once

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"

namespace drun::runtime::gpu {

// Replaces every thread's value by the sum of those of the threads before it. Afterwards sums[thread] includes the
// thread's own.
template <typename T>
DRUN_DEVICE void sum_before(const Block& block, PerThread<T>& value, T* sums) {
  PerThread<T> own, other;
  block.phase([&](unsigned thread) { sums[thread] = own(thread) = value(thread); });
  for (unsigned step = 1; step < kThreads; step *= 2) {
    block.phase([&](unsigned thread) { other(thread) = thread >= step ? sums[thread - step] : T{0}; });
    block.phase([&](unsigned thread) { sums[thread] += other(thread); });
  }
  block.phase([&](unsigned thread) { value(thread) = sums[thread] - own(thread); });
}

// True in the block that comes here last, which can then do work that needs the results of all blocks. Once in a
// kernel, at its end. No block waits.
DRUN_DEVICE bool is_last_block(const Block& block, Selection& selection) {
  DRUN_SHARED u32 n_before;
  block.phase([&](unsigned) { fence(); });
  block.phase([&](unsigned thread) {
    if (thread > 0) return;
    fence();  // pairs with the other threads' fences
    n_before = add_to(&selection.n_done, 1u);
    if (n_before + 1 == block.n_blocks()) selection.n_done = 0;
    fence();
  });
  return n_before + 1 == block.n_blocks();
}

}  // namespace drun::runtime::gpu
