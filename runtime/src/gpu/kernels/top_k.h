// Kernels that find the limit of a top K: the smallest magnitude that is chosen, digit by digit, if possible in a list
// of the large values. docs/gpu.md, "Kernels".
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"
#include "runtime/src/gpu/kernels/magnitude.h"
#include "runtime/src/gpu/kernels/sample.h"
#include "runtime/src/gpu/kernels/selection_block.h"

namespace drun::runtime::gpu {

// For one block.
DRUN_DEVICE void begin_selection(const Block& block, const SelectArguments& a) {
  Selection& selection = *at<Selection>(a.selection);
  block.last([&](unsigned thread) {
    for (unsigned i = thread; i < kBins; i += kThreads) selection.histogram[i] = 0;
    for (u64 i = thread; i < a.n_groups; i += kThreads) at<TileGroup>(a.groups)[i] = {0, 0};
    if (thread > 0) return;
    selection.n_chosen = 0;
    selection.least = a.k > 0 ? 0 : ~u64{0};
    selection.n_equal = a.k;
    selection.threshold = a.threshold;
    selection.choice = a.choice;
    selection.source = Source::kValues;
    selection.pivot = selection.n_listed = 0;
    selection.n_done = 0;
  });
}

// Counts the current digit among the values that begin as `least` does, of `n`. each(thread, number of threads, count)
// calls count(bits) for the values of that thread. Gradients fall into few bins of the first digit,
// so neighboring threads, which count at the same time, have separate copies. A block costs as much as many values, so
// only as many take part as have work for each thread.
template <typename F>
DRUN_DEVICE void count_digits(const Block& block, const SelectArguments& a, u64 n, F each) {
  constexpr unsigned kCopies = 4;
  DRUN_SHARED u32 counts[kBins * kCopies];
  Selection& selection = *at<Selection>(a.selection);
  const u64 n_useful = (n + kNeighbors * kThreads - 1) / (kNeighbors * kThreads);
  const u64 n_blocks = n_useful < block.n_blocks() ? n_useful : block.n_blocks();
  if (block.number() >= n_blocks) return;
  block.phase([&](unsigned thread) {
    for (unsigned i = thread; i < kBins * kCopies; i += kThreads) counts[i] = 0;
  });
  block.phase([&](unsigned thread) {
    const u64 least = selection.least;
    each(static_cast<u64>(block.number()) * kThreads + thread, n_blocks * kThreads, [&](u64 bits) {
      if ((bits & a.known) == least) add_to(&counts[(bits >> a.shift) % kBins * kCopies + thread % kCopies], 1u);
    });
  });
  block.phase([&](unsigned thread) {
    for (unsigned i = thread; i < kBins; i += kThreads) {
      u64 count = 0;
      for (unsigned copy = 0; copy < kCopies; ++copy) count += counts[i * kCopies + copy];
      if (count > 0) add_to(&selection.histogram[i], count);
    }
  });
}

// For the last block: one thread calls found(bin, number above it, number in it) for the bin that has the rank-th
// largest value. Clears the histogram.
template <typename F>
DRUN_DEVICE void find_bin(const Block& block, u64* histogram, u64 rank, F found) {
  constexpr unsigned kOwn = kBins / kThreads;
  PerThread<Several<u64, kOwn>> own;
  PerThread<u64> below;
  block.last([&](unsigned thread) {
    u64 sum = 0;
    DRUN_UNROLL for (unsigned i = 0; i < kOwn; ++i) {
      own(thread).values[i] = written_by_others(histogram[thread * kOwn + i]);
      sum += own(thread).values[i];
    }
    below(thread) = sum;
  });
  const u64 all = sum_before(block, below);
  block.phase([&](unsigned thread) {
    u64 above = all - below(thread);
    DRUN_UNROLL for (unsigned i = 0; i < kOwn; ++i) above -= own(thread).values[i];
    DRUN_UNROLL for (unsigned i = kOwn; i-- > 0;) {
      const u64 n = own(thread).values[i];
      if (rank > above && rank <= above + n) found(thread * kOwn + i, above, n);
      above += n;
    }
  });
  block.last([&](unsigned thread) {
    for (unsigned i = thread; i < kBins; i += kThreads) histogram[i] = 0;
  });
}

// Bits of an f32 that is not larger: its first digit distinguishes magnitudes of both types by eighths of an octave.
DRUN_DEVICE u32 coarse(float value) { return magnitude(value); }
DRUN_DEVICE u32 coarse(double value) {
  const double given = absolute(value);
  const float rounded = static_cast<float>(given);
  const u32 bits = magnitude(rounded);
  return static_cast<double>(rounded) > given ? bits - 1 : bits;
}
// The smallest magnitude that begins with these bits.
template <typename T>
DRUN_DEVICE u64 magnitude_of_coarse(u32 bits) {
  union {
    u32 bits;
    float value;
  } as = {bits};
  return magnitude(static_cast<T>(as.value));
}

// Guesses a pivot from a sample, such that the values at or above it fit into the list and include the top K.
template <typename T>
DRUN_DEVICE void guess_pivot(const Block& block, const SelectArguments& a) {
  Selection& selection = *at<Selection>(a.selection);
  const T* const values = at<const T>(a.values);
  using Neighbors = Several<T, kNeighbors>;
  static_assert(kSampleGroup % kNeighbors == 0);
  const bool is_wide = are_aligned(reinterpret_cast<const Neighbors*>(values));
  count_digits(block, a, a.n_sampled, [&](u64 thread, u64 n_threads, auto count) {
    const u64 n_whole = is_wide ? a.n_sampled / kNeighbors : 0;
    each_ahead<kAhead>(
        thread, n_whole, n_threads,
        [&](u64 i) {
          return *reinterpret_cast<const Neighbors*>(values + sampled(a.count, a.n_sampled, i * kNeighbors));
        },
        [&](u64, const Neighbors& neighbors) {
          DRUN_UNROLL for (unsigned k = 0; k < kNeighbors; ++k) count(coarse(neighbors.values[k]));
        });
    each_ahead<kSingleAhead>(
        n_whole * kNeighbors + thread, a.n_sampled, n_threads,
        [&](u64 i) { return values[sampled(a.count, a.n_sampled, i)]; }, [&](u64, T value) { count(coarse(value)); });
  });
  if (!is_last_block(block, selection)) return;
  find_bin(block, selection.histogram, a.sample_rank, [&](unsigned bin, u64 above, u64 n) {
    const double n_expected =
        static_cast<double>(above + n) / static_cast<double>(a.n_sampled) * static_cast<double>(a.count);
    if (n_expected > static_cast<double>(a.max_listed)) return;
    selection.pivot = magnitude_of_coarse<T>(bin << a.shift);
    selection.source = Source::kList;
  });
}

// Lists the values of at least the pivot, tile by tile, in their order within each.
template <typename T>
DRUN_DEVICE void collect(const Block& block, const SelectArguments& a) {
  DRUN_SHARED u64 first;
  Selection& selection = *at<Selection>(a.selection);
  if (selection.source == Source::kValues) return;
  const T* const values = at<const T>(a.values);
  const auto pivot = static_cast<BitsOf<T>>(selection.pivot);
  for (u64 tile = block.number(); tile < a.n_tiles; tile += block.n_blocks()) {
    PerThread<u32> are_large;  // a bit each
    PerThread<u64> before;
    block.last([&](unsigned thread) {
      const u64 rest = a.count - tile * kTile;
      u32 bits = 0;
      u64 counts = 0;
      each_of_tile(thread, values + tile * kTile, static_cast<unsigned>(rest < kTile ? rest : kTile),
                   [&](unsigned round, unsigned k, T value) {
                     if (magnitude(value) < pivot) return;
                     bits |= bit_of(round, k);
                     counts += one_in(round);
                   });
      are_large(thread) = bits;
      before(thread) = counts;
    });
    const u64 all = sum_before(block, before);
    block.phase([&](unsigned thread) {
      if (thread > 0) return;
      const u64 n = sum_of_rounds(all);
      first = add_to(&selection.n_listed, n);
      at<Tile>(a.tiles)[tile] = {0, 0, first, n};
    });
    block.last([&](unsigned thread) {
      if (first + sum_of_rounds(all) > a.max_listed) return;
      const u64 starts = before(thread) + sums_before(all);
      const u32 bits = are_large(thread);
      each_bit(thread, bits, [&](unsigned round, unsigned place, u32 bits_before) {
        const u64 to = first + in_round(starts, round) + n_bits(bits & bits_before);
        at<T>(a.list)[to] = values[tile * kTile + place];
        at<std::uint16_t>(a.places)[to] = static_cast<std::uint16_t>(place);
      });
    });
  }
  if (!is_last_block(block, selection)) return;
  block.last([&](unsigned thread) {
    if (thread > 0) return;
    const u64 n_listed = written_by_others(selection.n_listed);
    if (n_listed < a.k || n_listed > a.max_listed) selection.source = Source::kValues;
  });
}

// Finds one more digit of the smallest magnitude that is chosen.
template <typename T>
DRUN_DEVICE void find_digit(const Block& block, const SelectArguments& a) {
  Selection& selection = *at<Selection>(a.selection);
  const bool is_listed = selection.source == Source::kList;
  const T* const values = at<const T>(is_listed ? a.list : a.values);
  const u64 n = is_listed ? selection.n_listed : a.count;
  count_digits(block, a, n, [&](u64 thread, u64 n_threads, auto count) {
    each_value(thread, n_threads, values, n, [&](u64, T value) { count(magnitude(value)); });
  });
  if (!is_last_block(block, selection)) return;
  const u64 rank = selection.n_equal;
  find_bin(block, selection.histogram, rank, [&](unsigned bin, u64 above, u64) {
    selection.least |= static_cast<u64>(bin) << a.shift;
    selection.n_equal = rank - above;
  });
}

}  // namespace drun::runtime::gpu
