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

// Counts the current digit among values that begin as `least` does. each(thread, number of threads, count) calls
// count(bits) for the values of that thread. Gradients fall into few bins of the first digit,
// so neighboring threads, which count at the same time, have separate copies.
template <typename F>
DRUN_DEVICE void count_digits(const Block& block, const SelectArguments& a, F each) {
  constexpr unsigned kCopies = 4;
  DRUN_SHARED u32 counts[kBins * kCopies];
  Selection& selection = *at<Selection>(a.selection);
  block.phase([&](unsigned thread) {
    for (unsigned i = thread; i < kBins * kCopies; i += kThreads) counts[i] = 0;
  });
  block.phase([&](unsigned thread) {
    const u64 least = selection.least;
    each(static_cast<u64>(block.number()) * kThreads + thread, static_cast<u64>(block.n_blocks()) * kThreads,
         [&](u64 bits) {
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
  DRUN_SHARED u64 sums[kThreads];
  PerThread<u64> below, own;
  block.phase([&](unsigned thread) {
    own(thread) = 0;
    for (unsigned i = 0; i < kOwn; ++i) own(thread) += written_by_others(histogram[thread * kOwn + i]);
    below(thread) = own(thread);
  });
  sum_before(block, below, sums);
  block.phase([&](unsigned thread) {
    u64 above = sums[kThreads - 1] - below(thread) - own(thread);
    if (rank <= above || rank > above + own(thread)) return;
    unsigned bin = thread * kOwn + kOwn - 1;
    u64 n = written_by_others(histogram[bin]);
    while (rank > above + n) {
      above += n;
      n = written_by_others(histogram[--bin]);
    }
    found(bin, above, n);
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
  count_digits(block, a, [&](u64 thread, u64 n_threads, auto count) {
    each_ahead<kSingleAhead>(
        thread, a.n_sampled, n_threads, [&](u64 i) { return values[sampled(a.count, a.n_sampled, i)]; },
        [&](u64, T value) { count(coarse(value)); });
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
  DRUN_SHARED unsigned char is_large[kTile];
  DRUN_SHARED u32 sums[kThreads];
  DRUN_SHARED u64 first;
  Selection& selection = *at<Selection>(a.selection);
  if (selection.source == Source::kValues) return;
  const T* const values = at<const T>(a.values);
  const auto pivot = static_cast<BitsOf<T>>(selection.pivot);
  for (u64 tile = block.number(); tile < a.n_tiles; tile += block.n_blocks()) {
    // Reads in the order of memory; then each thread has a row of neighbors, which keeps the order.
    block.phase([&](unsigned thread) {
      const u64 rest = a.count - tile * kTile, n = rest < kTile ? rest : kTile;
      each_value(thread, kThreads, values + tile * kTile, n,
                 [&](u64 place, T value) { is_large[place] = magnitude(value) >= pivot; });
      for (u64 place = n + thread; place < kTile; place += kThreads) is_large[place] = 0;
    });
    PerThread<u32> before;
    block.phase([&](unsigned thread) {
      before(thread) = 0;
      for (unsigned k = 0; k < kRows; ++k) before(thread) += is_large[thread * kRows + k];
    });
    sum_before(block, before, sums);
    block.phase([&](unsigned thread) {
      if (thread > 0) return;
      const u64 n = sums[kThreads - 1];
      first = add_to(&selection.n_listed, n);
      at<Tile>(a.tiles)[tile] = {0, 0, first, n};
    });
    block.phase([&](unsigned thread) {
      if (first + sums[kThreads - 1] > a.max_listed) return;
      u64 to = first + before(thread);
      for (unsigned k = 0; k < kRows; ++k) {
        const unsigned place = thread * kRows + k;
        if (!is_large[place]) continue;
        at<T>(a.list)[to] = values[tile * kTile + place];
        at<std::uint16_t>(a.places)[to] = static_cast<std::uint16_t>(place);
        ++to;
      }
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
  count_digits(block, a, [&](u64 thread, u64 n_threads, auto count) {
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
