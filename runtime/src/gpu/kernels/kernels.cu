// Operations of training on memory of a GPU. Every kernel computes the same bits as the host's loop that it replaces
// (drun/training/), whatever the number of blocks. docs/gpu.md.
#include <cstddef>
#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/halves.h"
#include "runtime/src/gpu/kernels/sample.h"

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

// Calls visit(memory, begin in the bucket, n) for this block's chunks of all pieces.
template <typename T, typename F>
DRUN_DEVICE void each_chunk(const Block& block, const PieceArguments& a, F visit) {
  for (u64 chunk = block.number(); chunk < a.n_chunks; chunk += block.n_blocks()) {
    u64 low = 0, high = a.n_pieces - 1;
    while (low < high) {
      const u64 middle = (low + high + 1) / 2;
      if (a.pieces[middle].first_chunk <= chunk) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const PieceArgument& piece = a.pieces[low];
    const u64 offset = (chunk - piece.first_chunk) * kChunk, rest = piece.count - offset;
    visit(at<T>(piece.memory) + offset, piece.begin + offset, rest < kChunk ? rest : kChunk);
  }
}

template <typename T>
DRUN_DEVICE void pack(const Block& block, const PieceArguments& a) {
  block.last([&](unsigned thread) {
    each_chunk<T>(block, a, [&](const T* memory, u64 begin, u64 n) {
      map(thread, memory, at<T>(a.bucket) + begin, n, [](T value) { return value; });
    });
  });
}

template <typename T>
DRUN_DEVICE void unpack(const Block& block, const PieceArguments& a) {
  block.last([&](unsigned thread) {
    each_chunk<T>(block, a, [&](T* memory, u64 begin, u64 n) {
      map(thread, at<const T>(a.bucket) + begin, memory, n, [](T value) { return value; });
    });
  });
}

template <typename T>
DRUN_DEVICE T absolute(T value) {
  return value < 0 ? -value : value;  // the sign of a zero does not matter here, and NaN stays NaN
}

// training::narrow
template <typename T, typename Half>
DRUN_DEVICE void narrow(const Block& block, const PieceArguments& a) {
  const T limit = static_cast<T>(a.limit), divisor = static_cast<T>(a.factor);
  block.last([&](unsigned thread) {
    u64 n_cut = 0;
    each_chunk<T>(block, a, [&](const T* memory, u64 begin, u64 n) {
      map(thread, memory, at<std::uint16_t>(a.bucket) + begin, n, [&](T given) {
        T value = given / divisor;
        const bool is_cut = absolute(value) > limit && absolute(given) <= Largest<T>::kValue;
        if (is_cut) {
          value = value < 0 ? -limit : limit;
          ++n_cut;
        }
        return Half::narrow(value);
      });
    });
    if (n_cut > 0) add_to(at<u64>(a.n_cut), n_cut);
  });
}

// training::widen
template <typename T, typename Half>
DRUN_DEVICE void widen(const Block& block, const PieceArguments& a) {
  const T factor = static_cast<T>(a.factor);
  block.last([&](unsigned thread) {
    each_chunk<T>(block, a, [&](T* memory, u64 begin, u64 n) {
      map(thread, at<const std::uint16_t>(a.bucket) + begin, memory, n,
          [&](std::uint16_t half) { return static_cast<T>(Half::widen(half)) * factor; });
    });
  });
}

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
      const T* const other = at<const T>(a.other) + begin;
      for (u64 i = thread; i < n; i += kThreads) data[i] += other[i];
    });
  });
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

// Counts the current digit among n values that begin as `least` does. Gradients fall into few bins of the first digit,
// so neighboring threads, which count at the same time, have separate copies.
template <typename F>
DRUN_DEVICE void count_digits(const Block& block, const SelectArguments& a, u64 n, F bits_of) {
  constexpr unsigned kCopies = 4;
  DRUN_SHARED u32 counts[kBins * kCopies];
  Selection& selection = *at<Selection>(a.selection);
  block.phase([&](unsigned thread) {
    for (unsigned i = thread; i < kBins * kCopies; i += kThreads) counts[i] = 0;
  });
  block.phase([&](unsigned thread) {
    const u64 least = selection.least, stride = static_cast<u64>(block.n_blocks()) * kThreads;
    DRUN_UNROLL for (u64 i = static_cast<u64>(block.number()) * kThreads + thread; i < n; i += stride) {
      const u64 bits = bits_of(i);
      if ((bits & a.known) == least) add_to(&counts[(bits >> a.shift) % kBins * kCopies + thread % kCopies], 1u);
    }
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
  count_digits(block, a, a.n_sampled,
               [&](u64 i) { return static_cast<u64>(coarse(values[sampled(a.count, a.n_sampled, i)])); });
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
  const u64 pivot = selection.pivot;
  for (u64 tile = block.number(); tile < a.n_tiles; tile += block.n_blocks()) {
    // Reads in the order of memory; then each thread has a row of neighbors, which keeps the order.
    block.phase([&](unsigned thread) {
      DRUN_UNROLL for (unsigned row = 0; row < kRows; ++row) {
        const unsigned place = row * kThreads + thread;
        const u64 i = tile * kTile + place;
        is_large[place] = i < a.count && magnitude(values[i]) >= pivot;
      }
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
  count_digits(block, a, is_listed ? selection.n_listed : a.count,
               [&](u64 i) { return static_cast<u64>(magnitude(values[i])); });
  if (!is_last_block(block, selection)) return;
  const u64 rank = selection.n_equal;
  find_bin(block, selection.histogram, rank, [&](unsigned bin, u64 above, u64) {
    selection.least |= static_cast<u64>(bin) << a.shift;
    selection.n_equal = rank - above;
  });
}

enum Worth : unsigned char { kNot = 0, kAbove = 1, kEqual = 2 };

// The limit for chosen values of a selection.
struct Limit {
  Choice choice;
  double threshold;
  u64 least;

  DRUN_DEVICE explicit Limit(const Selection& selection)
      : choice(selection.choice), threshold(selection.threshold), least(selection.least) {}
  template <typename T>
  DRUN_DEVICE Worth worth_of(T value) const {
    if (choice == Choice::kThreshold) return absolute(static_cast<double>(value)) < threshold ? kNot : kAbove;
    const u64 bits = magnitude(value);
    return bits > least ? kAbove : bits == least ? kEqual : kNot;
  }
};

// The values of a tile that may be chosen, in their order.
template <typename T>
struct Candidates {
  const T* values;
  const std::uint16_t* places;  // in the tile; nullptr: the index itself
  unsigned n;
};
template <typename T>
DRUN_DEVICE Candidates<T> candidates_of(const Selection& selection, const SelectArguments& a, u64 tile) {
  if (selection.source == Source::kList) {
    const Tile& listed = at<const Tile>(a.tiles)[tile];
    return {at<const T>(a.list) + listed.first_listed, at<const std::uint16_t>(a.places) + listed.first_listed,
            static_cast<unsigned>(listed.n_listed)};
  }
  const u64 rest = a.count - tile * kTile;
  return {at<const T>(a.values) + tile * kTile, nullptr, static_cast<unsigned>(rest < kTile ? rest : kTile)};
}

// For the last block: replaces the counts of tiles by those of all tiles before.
DRUN_DEVICE void scan_tiles(const Block& block, const SelectArguments& a) {
  DRUN_SHARED u64 sums[kThreads];
  Selection& selection = *at<Selection>(a.selection);
  Tile* const tiles = at<Tile>(a.tiles);
  const u64 n_own = (a.n_tiles + kThreads - 1) / kThreads;
  PerThread<u64> n_above, n_equal;
  block.phase([&](unsigned thread) {
    n_above(thread) = n_equal(thread) = 0;
    for (u64 i = thread * n_own; i < (thread + 1) * n_own && i < a.n_tiles; ++i) {
      n_above(thread) += written_by_others(tiles[i].n_above);
      n_equal(thread) += written_by_others(tiles[i].n_equal);
    }
  });
  sum_before(block, n_above, sums);
  sum_before(block, n_equal, sums);
  block.last([&](unsigned thread) {
    u64 above = n_above(thread), equal = n_equal(thread);
    for (u64 i = thread * n_own; i < (thread + 1) * n_own && i < a.n_tiles; ++i) {
      const u64 tile_above = written_by_others(tiles[i].n_above), tile_equal = written_by_others(tiles[i].n_equal);
      tiles[i].n_above = above;
      tiles[i].n_equal = equal;
      above += tile_above;
      equal += tile_equal;
    }
    if (thread == kThreads - 1) {
      selection.n_chosen = above + (equal < selection.n_equal ? equal : selection.n_equal);
    }
  });
}

template <typename T>
DRUN_DEVICE void count_tiles(const Block& block, const SelectArguments& a) {
  DRUN_SHARED u32 n_above, n_equal;
  Selection& selection = *at<Selection>(a.selection);
  const Limit limit(selection);
  for (u64 tile = block.number(); tile < a.n_tiles; tile += block.n_blocks()) {
    const Candidates<T> candidates = candidates_of<T>(selection, a, tile);
    block.phase([&](unsigned thread) {
      if (thread == 0) n_above = n_equal = 0;
    });
    block.phase([&](unsigned thread) {
      u32 above = 0, equal = 0;
      DRUN_UNROLL for (unsigned place = thread; place < candidates.n; place += kThreads) {
        const Worth worth = limit.worth_of(candidates.values[place]);
        above += worth == kAbove;
        equal += worth == kEqual;
      }
      if (above > 0) add_to(&n_above, above);
      if (equal > 0) add_to(&n_equal, equal);
    });
    block.phase([&](unsigned thread) {
      if (thread > 0) return;
      at<Tile>(a.tiles)[tile].n_above = n_above;
      at<Tile>(a.tiles)[tile].n_equal = n_equal;
    });
  }
  if (is_last_block(block, selection)) scan_tiles(block, a);
}

// Writes the chosen values, in their order.
template <typename T, typename Index>
DRUN_DEVICE void take(const Block& block, const SelectArguments& a) {
  DRUN_SHARED unsigned char worths[kTile];
  DRUN_SHARED u32 sums[kThreads];
  const Selection& selection = *at<const Selection>(a.selection);
  const Limit limit(selection);
  const u64 most_equal = selection.n_equal;
  for (u64 tile = block.number(); tile < a.n_tiles; tile += block.n_blocks()) {
    const Tile before = at<const Tile>(a.tiles)[tile];
    const Candidates<T> candidates = candidates_of<T>(selection, a, tile);
    const unsigned n_rows = (candidates.n + kThreads - 1) / kThreads;  // also the number of neighbors of each thread
    block.phase([&](unsigned thread) {
      DRUN_UNROLL for (unsigned row = 0; row < n_rows; ++row) {
        const unsigned place = row * kThreads + thread;
        worths[place] = place < candidates.n ? limit.worth_of(candidates.values[place]) : kNot;
      }
    });
    PerThread<u32> counts;  // lower half: values above; upper half: equal ones
    block.phase([&](unsigned thread) {
      counts(thread) = 0;
      for (unsigned k = 0; k < n_rows; ++k) {
        const unsigned char worth = worths[thread * n_rows + k];
        counts(thread) += worth == kAbove ? 1u : worth == kEqual ? 1u << 16 : 0u;
      }
    });
    sum_before(block, counts, sums);
    block.phase([&](unsigned thread) {
      u64 n_above = before.n_above + (counts(thread) & 0xffffu), n_equal = before.n_equal + (counts(thread) >> 16);
      for (unsigned k = 0; k < n_rows; ++k) {
        const unsigned candidate = thread * n_rows + k;
        const unsigned char worth = worths[candidate];
        if (worth == kNot) continue;
        const u64 n_equal_taken = n_equal < most_equal ? n_equal : most_equal;
        const bool is_taken = worth == kAbove || n_equal < most_equal;
        if (is_taken) {
          const u64 place = n_above + n_equal_taken;
          const unsigned in_tile = candidates.places != nullptr ? candidates.places[candidate] : candidate;
          at<Index>(a.indices)[place] = static_cast<Index>(tile * kTile + in_tile);
          at<T>(a.out)[place] = candidates.values[candidate];
        }
        n_above += worth == kAbove;
        n_equal += worth == kEqual;
      }
    });
  }
}

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
      for (u64 i = begin + thread; i < begin + n; i += kThreads) {
        const double x = at<const T>(a.a)[i], y = at<const T>(a.b)[i];
        own.ab += x * y;
        own.aa += x * x;
        own.bb += y * y;
      }
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
      for (u64 i = begin + thread; i < begin + n; i += kThreads) {
        at<T>(a.into)[i] = static_cast<T>(of_a * at<const T>(a.a)[i] + of_b * at<const T>(a.b)[i]);
      }
    }
  });
}

// By bytes per element.
DRUN_KERNEL(drun_pack_1, PieceArguments, pack<std::uint8_t>)
DRUN_KERNEL(drun_pack_2, PieceArguments, pack<std::uint16_t>)
DRUN_KERNEL(drun_pack_4, PieceArguments, pack<std::uint32_t>)
DRUN_KERNEL(drun_pack_8, PieceArguments, pack<std::uint64_t>)
DRUN_KERNEL(drun_unpack_1, PieceArguments, unpack<std::uint8_t>)
DRUN_KERNEL(drun_unpack_2, PieceArguments, unpack<std::uint16_t>)
DRUN_KERNEL(drun_unpack_4, PieceArguments, unpack<std::uint32_t>)
DRUN_KERNEL(drun_unpack_8, PieceArguments, unpack<std::uint64_t>)

DRUN_KERNEL(drun_narrow_f32_f16, PieceArguments, narrow<float, Float16>)
DRUN_KERNEL(drun_narrow_f32_bf16, PieceArguments, narrow<float, Bfloat16>)
DRUN_KERNEL(drun_narrow_f64_f16, PieceArguments, narrow<double, Float16>)
DRUN_KERNEL(drun_narrow_f64_bf16, PieceArguments, narrow<double, Bfloat16>)
DRUN_KERNEL(drun_widen_f32_f16, PieceArguments, widen<float, Float16>)
DRUN_KERNEL(drun_widen_f32_bf16, PieceArguments, widen<float, Bfloat16>)
DRUN_KERNEL(drun_widen_f64_f16, PieceArguments, widen<double, Float16>)
DRUN_KERNEL(drun_widen_f64_bf16, PieceArguments, widen<double, Bfloat16>)

DRUN_KERNEL(drun_scale_f16, ElementArguments, scale_half<Float16>)
DRUN_KERNEL(drun_scale_bf16, ElementArguments, scale_half<Bfloat16>)
DRUN_KERNEL(drun_scale_f32, ElementArguments, scale<float>)
DRUN_KERNEL(drun_scale_f64, ElementArguments, scale<double>)
DRUN_KERNEL(drun_divide_f32, ElementArguments, divide<float>)
DRUN_KERNEL(drun_divide_f64, ElementArguments, divide<double>)
DRUN_KERNEL(drun_add_f32, ElementArguments, add<float>)
DRUN_KERNEL(drun_add_f64, ElementArguments, add<double>)

DRUN_KERNEL(drun_begin_selection, SelectArguments, begin_selection)
DRUN_KERNEL(drun_guess_pivot_f32, SelectArguments, guess_pivot<float>)
DRUN_KERNEL(drun_guess_pivot_f64, SelectArguments, guess_pivot<double>)
DRUN_KERNEL(drun_collect_f32, SelectArguments, collect<float>)
DRUN_KERNEL(drun_collect_f64, SelectArguments, collect<double>)
DRUN_KERNEL(drun_find_digit_f32, SelectArguments, find_digit<float>)
DRUN_KERNEL(drun_find_digit_f64, SelectArguments, find_digit<double>)
DRUN_KERNEL(drun_count_tiles_f32, SelectArguments, count_tiles<float>)
DRUN_KERNEL(drun_count_tiles_f64, SelectArguments, count_tiles<double>)
DRUN_KERNEL(drun_take_f32_u32, SelectArguments, take<float, std::uint32_t>)
DRUN_KERNEL(drun_take_f32_u64, SelectArguments, take<float, std::uint64_t>)
DRUN_KERNEL(drun_take_f64_u32, SelectArguments, take<double, std::uint32_t>)
DRUN_KERNEL(drun_take_f64_u64, SelectArguments, take<double, std::uint64_t>)

DRUN_KERNEL(drun_scatter_add_f32_u32, ScatterArguments, scatter_add<float, std::uint32_t>)
DRUN_KERNEL(drun_scatter_add_f32_u64, ScatterArguments, scatter_add<float, std::uint64_t>)
DRUN_KERNEL(drun_scatter_add_f64_u32, ScatterArguments, scatter_add<double, std::uint32_t>)
DRUN_KERNEL(drun_scatter_add_f64_u64, ScatterArguments, scatter_add<double, std::uint64_t>)
DRUN_KERNEL(drun_scatter_zero_f32_u32, ScatterArguments, scatter_zero<float, std::uint32_t>)
DRUN_KERNEL(drun_scatter_zero_f32_u64, ScatterArguments, scatter_zero<float, std::uint64_t>)
DRUN_KERNEL(drun_scatter_zero_f64_u32, ScatterArguments, scatter_zero<double, std::uint32_t>)
DRUN_KERNEL(drun_scatter_zero_f64_u64, ScatterArguments, scatter_zero<double, std::uint64_t>)

DRUN_KERNEL(drun_dots_f32, DotsArguments, dots<float>)
DRUN_KERNEL(drun_dots_f64, DotsArguments, dots<double>)
DRUN_KERNEL(drun_add_dots, DotsArguments, add_dots)
DRUN_KERNEL(drun_adasum_f32, DotsArguments, adasum<float>)
DRUN_KERNEL(drun_adasum_f64, DotsArguments, adasum<double>)

}  // namespace drun::runtime::gpu
