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

// Calls use(round, k, worth) for this thread's part of a tile.
template <typename T, typename Use>
DRUN_DEVICE void each_worth(unsigned thread, const SelectArguments& a, const Limit& limit, u64 tile, Use use) {
  const u64 rest = a.count - tile * kTile;
  limit.visit<T>([&](auto worth_of) {
    each_of_tile(thread, at<const T>(a.values) + tile * kTile, static_cast<unsigned>(rest < kTile ? rest : kTile),
                 [&](unsigned round, unsigned k, T value) { use(round, k, worth_of(value)); });
  });
}

// As many threads look through the list of a tile.
inline constexpr unsigned kReaders = kThreads / kTilesOfGroup;

// Two numbers below 2^32, to be added together.
DRUN_DEVICE u64 pair_of(u64 n_above, u64 n_equal) { return n_equal << 32 | n_above; }
DRUN_DEVICE TileGroup counts_of(u64 pair) { return {pair & 0xffffffffu, pair >> 32}; }

// For the last block: replaces the counts of groups by those of all groups before.
DRUN_DEVICE void scan_groups(const Block& block, const SelectArguments& a) {
  Selection& selection = *at<Selection>(a.selection);
  TileGroup* const groups = at<TileGroup>(a.groups);
  const u64 n_own = (a.n_groups + kThreads - 1) / kThreads;
  const auto each_own = [&](unsigned thread, auto use) {
    const u64 end = (thread + 1) * n_own < a.n_groups ? (thread + 1) * n_own : a.n_groups;
    each_ahead<kAhead>(
        thread * n_own, end, 1,
        [&](u64 i) {
          return TileGroup{written_by_others(groups[i].n_above), written_by_others(groups[i].n_equal)};
        },
        use);
  };
  PerThread<u64> n_above, n_equal;
  block.last([&](unsigned thread) {
    u64 above = 0, equal = 0;
    each_own(thread, [&](u64, const TileGroup& counts) {
      above += counts.n_above;
      equal += counts.n_equal;
    });
    n_above(thread) = above;
    n_equal(thread) = equal;
  });
  const u64 all_above = sum_before(block, n_above), all_equal = sum_before(block, n_equal);
  block.last([&](unsigned thread) {
    u64 above = n_above(thread), equal = n_equal(thread);
    each_own(thread, [&](u64 i, const TileGroup& counts) {
      groups[i] = {above, equal};
      above += counts.n_above;
      equal += counts.n_equal;
    });
    if (thread > 0) return;
    selection.n_chosen = all_above + (all_equal < selection.n_equal ? all_equal : selection.n_equal);
  });
}

// The readers of a tile's list have neighbors each, which keeps the order. Calls use(index in the list, value, worth)
// for the candidates of the thread in a group.
template <typename T, typename Use>
DRUN_DEVICE void each_listed(unsigned thread, const SelectArguments& a, const Limit& limit, u64 group, Use use) {
  const u64 number = group * kTilesOfGroup + thread / kReaders, reader = thread % kReaders;
  if (number >= a.n_tiles) return;
  const Tile& tile = at<const Tile>(a.tiles)[number];
  const u64 first = tile.first_listed, n = tile.n_listed;
  const T* const list = at<const T>(a.list);
  limit.visit<T>([&](auto worth_of) {
    each_ahead<kSingleAhead>(
        first + n * reader / kReaders, first + n * (reader + 1) / kReaders, 1, [&](u64 i) { return list[i]; },
        [&](u64 i, T value) { use(i, value, worth_of(value)); });
  });
}

// The numbers among the thread's candidates of a group, as a pair.
template <typename T>
DRUN_DEVICE u64 count_listed(unsigned thread, const SelectArguments& a, const Limit& limit, u64 group) {
  u32 n_above = 0, n_equal = 0;
  each_listed<T>(thread, a, limit, group, [&](u64, T, Worth worth) {
    n_above += worth == kAbove;
    n_equal += worth == kEqual;
  });
  return pair_of(n_above, n_equal);
}

template <typename T>
DRUN_DEVICE void count_groups(const Block& block, const SelectArguments& a, const Limit& limit) {
  for (u64 group = block.number(); group < a.n_groups; group += block.n_blocks()) {
    PerThread<u64> counts;
    block.last([&](unsigned thread) { counts(thread) = count_listed<T>(thread, a, limit, group); });
    const u64 all = sum_before(block, counts);
    block.last([&](unsigned thread) {
      if (thread == 0) at<TileGroup>(a.groups)[group] = counts_of(all);
    });
  }
}

template <typename T>
DRUN_DEVICE void count_tiles(const Block& block, const SelectArguments& a) {
  Selection& selection = *at<Selection>(a.selection);
  const Limit limit(selection);
  if (selection.source == Source::kList) {
    count_groups<T>(block, a, limit);
  } else {
    for (u64 tile = block.number(); tile < a.n_tiles; tile += block.n_blocks()) {
      PerThread<u64> counts;
      block.last([&](unsigned thread) {
        u32 n_above = 0, n_equal = 0;
        each_worth<T>(thread, a, limit, tile, [&](unsigned, unsigned, Worth worth) {
          n_above += worth == kAbove;
          n_equal += worth == kEqual;
        });
        counts(thread) = pair_of(n_above, n_equal);
      });
      const TileGroup all = counts_of(sum_before(block, counts));
      block.last([&](unsigned thread) {
        if (thread > 0) return;
        TileGroup& group = at<TileGroup>(a.groups)[tile / kTilesOfGroup];
        add_to(&group.n_above, all.n_above);
        if (all.n_equal > 0) add_to(&group.n_equal, all.n_equal);
        at<Tile>(a.tiles)[tile].n_above = all.n_above;
        at<Tile>(a.tiles)[tile].n_equal = all.n_equal;
      });
    }
  }
  if (is_last_block(block, selection)) scan_groups(block, a);
}

// Calls write(place) if a value is chosen before which there are `before`.
template <typename Write>
DRUN_DEVICE void choose(Worth worth, const TileGroup& before, u64 most_equal, Write write) {
  if (worth == kNot || (worth == kEqual && before.n_equal >= most_equal)) return;
  write(before.n_above + (before.n_equal < most_equal ? before.n_equal : most_equal));
}

template <typename T, typename Index>
DRUN_DEVICE void write_chosen(const SelectArguments& a, u64 to, u64 index, T value) {
  at<Index>(a.indices)[to] = static_cast<Index>(index);
  at<T>(a.out)[to] = value;
}

template <typename T, typename Index>
DRUN_DEVICE void take_listed(const Block& block, const SelectArguments& a, const Limit& limit, u64 most_equal) {
  for (u64 group = block.number(); group < a.n_groups; group += block.n_blocks()) {
    PerThread<u64> counts, before;
    block.last([&](unsigned thread) { counts(thread) = before(thread) = count_listed<T>(thread, a, limit, group); });
    sum_before(block, before);
    block.last([&](unsigned thread) {
      if (counts(thread) == 0) return;
      const TileGroup of_group = at<const TileGroup>(a.groups)[group], in_group = counts_of(before(thread));
      const u64 first = (group * kTilesOfGroup + thread / kReaders) * kTile;
      TileGroup next = {of_group.n_above + in_group.n_above, of_group.n_equal + in_group.n_equal};
      each_listed<T>(thread, a, limit, group, [&](u64 i, T value, Worth worth) {
        choose(worth, next, most_equal,
               [&](u64 to) { write_chosen<T, Index>(a, to, first + at<const std::uint16_t>(a.places)[i], value); });
        next.n_above += worth == kAbove;
        next.n_equal += worth == kEqual;
      });
    });
  }
}

// A block takes tiles that follow each other, and adds up their numbers itself.
template <typename T, typename Index>
DRUN_DEVICE void take_values(const Block& block, const SelectArguments& a, const Limit& limit, u64 most_equal) {
  const u64 first = a.n_tiles * block.number() / block.n_blocks();
  const u64 end = a.n_tiles * (block.number() + 1) / block.n_blocks();
  if (first == end) return;
  PerThread<u64> in_group;
  block.last([&](unsigned thread) {
    const u64 tile = first / kTilesOfGroup * kTilesOfGroup + thread;
    const Tile* const tiles = at<const Tile>(a.tiles);
    in_group(thread) = tile < first ? pair_of(tiles[tile].n_above, tiles[tile].n_equal) : 0;
  });
  TileGroup before = counts_of(sum_before(block, in_group));
  before.n_above += at<const TileGroup>(a.groups)[first / kTilesOfGroup].n_above;
  before.n_equal += at<const TileGroup>(a.groups)[first / kTilesOfGroup].n_equal;
  for (u64 tile = first; tile < end; ++tile) {
    PerThread<u32> are_above, are_equal;  // a bit each
    PerThread<u64> n_above, n_equal;      // in rounds
    block.last([&](unsigned thread) {
      u32 above = 0, equal = 0;
      u64 counts_above = 0, counts_equal = 0;
      each_worth<T>(thread, a, limit, tile, [&](unsigned round, unsigned k, Worth worth) {
        if (worth == kAbove) above |= bit_of(round, k), counts_above += one_in(round);
        if (worth == kEqual) equal |= bit_of(round, k), counts_equal += one_in(round);
      });
      are_above(thread) = above;
      are_equal(thread) = equal;
      n_above(thread) = counts_above;
      n_equal(thread) = counts_equal;
    });
    const u64 all_above = sum_before(block, n_above);
    const u64 all_equal = limit.choice == Choice::kTopK ? sum_before(block, n_equal) : 0;
    block.last([&](unsigned thread) {
      const u32 above = are_above(thread), equal = are_equal(thread);
      const u64 starts_above = n_above(thread) + sums_before(all_above);
      const u64 starts_equal = n_equal(thread) + sums_before(all_equal);
      each_bit(thread, above | equal, [&](unsigned round, unsigned place, u32 bits_before) {
        const TileGroup next = {before.n_above + in_round(starts_above, round) + n_bits(above & bits_before),
                                before.n_equal + in_round(starts_equal, round) + n_bits(equal & bits_before)};
        const bool is_above = (above >> (round * kNeighbors + place % kNeighbors) & 1) != 0;
        choose(is_above ? kAbove : kEqual, next, most_equal, [&](u64 to) {
          const u64 index = tile * kTile + place;
          write_chosen<T, Index>(a, to, index, at<const T>(a.values)[index]);
        });
      });
    });
    before.n_above += sum_of_rounds(all_above);
    before.n_equal += sum_of_rounds(all_equal);
  }
}

// Writes the chosen values, in their order.
template <typename T, typename Index>
DRUN_DEVICE void take(const Block& block, const SelectArguments& a) {
  const Selection& selection = *at<const Selection>(a.selection);
  const Limit limit(selection);
  if (selection.source == Source::kList) {
    take_listed<T, Index>(block, a, limit, selection.n_equal);
  } else {
    take_values<T, Index>(block, a, limit, selection.n_equal);
  }
}

}  // namespace drun::runtime::gpu
