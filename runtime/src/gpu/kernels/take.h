// Kernels that take the chosen values of a selection, whose limit is known: a count in each tile, then the values in
// their order.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"
#include "runtime/src/gpu/kernels/magnitude.h"
#include "runtime/src/gpu/kernels/selection_block.h"

namespace drun::runtime::gpu {

enum Worth : unsigned char { kNot = 0, kAbove = 1, kEqual = 2 };

// The limit for chosen values of a selection.
struct Limit {
  Choice choice;
  double threshold;
  u64 least;

  DRUN_DEVICE explicit Limit(const Selection& selection)
      : choice(selection.choice), threshold(selection.threshold), least(selection.least) {}
  // Calls f(worth_of), for values of T: f is compiled for each choice by itself.
  template <typename T, typename F>
  DRUN_DEVICE void visit(F f) const {
    if (choice == Choice::kThreshold) {
      const T limit = static_cast<T>(threshold);  // exact: see Selection
      f([limit](T value) { return absolute(value) < limit ? kNot : kAbove; });
    } else {
      const auto limit = static_cast<BitsOf<T>>(least);  // all bits, if nothing is chosen: above any magnitude
      f([limit](T value) {
        const BitsOf<T> bits = magnitude(value);
        return bits > limit ? kAbove : bits == limit ? kEqual : kNot;
      });
    }
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
      limit.visit<T>([&](auto worth_of) {
        each_value(thread, kThreads, candidates.values, candidates.n, [&](u64, T value) {
          const Worth worth = worth_of(value);
          above += worth == kAbove;
          equal += worth == kEqual;
        });
      });
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
      limit.visit<T>([&](auto worth_of) {
        each_value(thread, kThreads, candidates.values, candidates.n,
                   [&](u64 place, T value) { worths[place] = worth_of(value); });
      });
      for (unsigned place = candidates.n + thread; place < n_rows * kThreads; place += kThreads) worths[place] = kNot;
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

}  // namespace drun::runtime::gpu
