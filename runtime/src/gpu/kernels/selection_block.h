// The steps that a whole block takes together in the kernels of a selection: sums over its threads, and whether it is
// the last one.
#pragma once

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"

namespace drun::runtime::gpu {

// A thread's neighbors in a round of a tile begin at this place.
DRUN_DEVICE unsigned place_of(unsigned thread, unsigned round) { return (round * kThreads + thread) * kNeighbors; }

// Calls use(round, k, value) for this thread's part of a tile of `n` values: k is the place among its neighbors of the
// round.
template <typename T, typename Use>
DRUN_DEVICE void each_of_tile(unsigned thread, const T* values, unsigned n, Use use) {
  using Neighbors = Several<T, kNeighbors>;
  const auto* const wide = reinterpret_cast<const Neighbors*>(values);
  if (n == kTile && are_aligned(wide)) {
    Neighbors rows[kRounds];
    DRUN_UNROLL for (unsigned round = 0; round < kRounds; ++round) rows[round] = wide[round * kThreads + thread];
    DRUN_UNROLL for (unsigned round = 0; round < kRounds; ++round) {
      DRUN_UNROLL for (unsigned k = 0; k < kNeighbors; ++k) use(round, k, rows[round].values[k]);
    }
    return;
  }
  DRUN_UNROLL for (unsigned round = 0; round < kRounds; ++round) {
    DRUN_UNROLL for (unsigned k = 0; k < kNeighbors; ++k) {
      const unsigned place = place_of(thread, round) + k;
      if (place < n) use(round, k, values[place]);
    }
  }
}

// Numbers for each round of a tile, of 16 bits.
DRUN_DEVICE u64 one_in(unsigned round) { return u64{1} << (16 * round); }
DRUN_DEVICE unsigned in_round(u64 numbers, unsigned round) {
  return static_cast<unsigned>(numbers >> (16 * round)) & 0xffffu;
}
static_assert(kRounds <= 4 && kNeighbors * kThreads < 1u << 16);
// The sums of all rounds before each; they must be below 2^16.
DRUN_DEVICE u64 sums_before(u64 numbers) { return (numbers << 16) + (numbers << 32) + (numbers << 48); }
DRUN_DEVICE unsigned sum_of_rounds(u64 numbers) {
  return in_round(sums_before(numbers), kRounds - 1) + in_round(numbers, kRounds - 1);
}
static_assert(kTile < 1u << 16);

// For each value of a thread's part of a tile a bit.
DRUN_DEVICE u32 bit_of(unsigned round, unsigned k) { return 1u << (round * kNeighbors + k); }
// Calls use(round, place in the tile, the bits before this one in its round) for each bit that is set.
template <typename Use>
DRUN_DEVICE void each_bit(unsigned thread, u32 bits, Use use) {
  DRUN_NO_UNROLL for (; bits != 0; bits &= bits - 1) {
    const unsigned bit = lowest_bit(bits), round = bit / kNeighbors, k = bit % kNeighbors;
    use(round, place_of(thread, round) + k, bit_of(round, k) - bit_of(round, 0));
  }
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
