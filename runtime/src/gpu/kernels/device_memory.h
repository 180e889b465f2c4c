// Access to memory of the device for all kernels: by addresses, and in loops over elements.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"

namespace drun::runtime::gpu {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <typename T>
DRUN_DEVICE T* at(u64 address) {
  T* const pointer = reinterpret_cast<T*>(address);
  assume_global(pointer);
  return pointer;
}

// Neighbors that are read or written by as few accesses as possible, of at most 16 bytes each.
template <typename T, unsigned n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Several {
  T values[n];
};

// Elements of T that one access moves, of at most 16 bytes.
template <typename T>
inline constexpr unsigned kWidthOf = 16 / sizeof(T);
// Accesses of a thread in flight: of 16 bytes, and of single elements.
inline constexpr unsigned kAhead = 4, kSingleAhead = 8;

template <typename... T>
DRUN_DEVICE bool are_aligned(const T*... pointers) {
  return ((reinterpret_cast<u64>(pointers) % alignof(T) == 0) && ...);
}

// Calls use(i, load(i)) for i = first, first + stride, ... below `end`, in this order. Loads n_ahead values before it
// uses the first of them: a GPU's memory is slow, and fast only for many accesses at a time.
template <unsigned n_ahead, typename Load, typename Use>
DRUN_DEVICE void each_ahead(u64 first, u64 end, u64 stride, Load load, Use use) {
  u64 i = first;
  for (; i + (n_ahead - 1) * stride < end; i += n_ahead * stride) {
    decltype(load(i)) loaded[n_ahead];
    DRUN_UNROLL for (unsigned j = 0; j < n_ahead; ++j) loaded[j] = load(i + j * stride);
    DRUN_UNROLL for (unsigned j = 0; j < n_ahead; ++j) use(i + j * stride, loaded[j]);
  }
  DRUN_NO_UNROLL for (; i < end; i += stride) use(i, load(i));
}

// Number of elements up to the first one that is aligned for a Whole, of at most `n`.
template <typename Whole, typename T>
DRUN_DEVICE u64 n_until_aligned(const T* pointer, u64 n) {
  const u64 bytes = (alignof(Whole) - reinterpret_cast<u64>(pointer) % alignof(Whole)) % alignof(Whole);
  return bytes / sizeof(T) < n ? bytes / sizeof(T) : n;
}

// The element of a thread among the `head` ones before the `n_whole` that are aligned, or among those after them.
DRUN_DEVICE u64 edge_of(u64 thread, u64 head, u64 n_whole) { return thread < head ? thread : thread + n_whole; }

// Calls use(i, values[i]) for the part of `n` values of thread number `thread` of `n_threads`.
template <typename T, typename Use>
DRUN_DEVICE void each_value(u64 thread, u64 n_threads, const T* values, u64 n, Use use) {
  constexpr unsigned kWidth = kWidthOf<T>;
  using Read = Several<T, kWidth>;
  const u64 head = n_until_aligned<Read>(values, n), n_whole = (n - head) / kWidth;
  const auto* const wide = reinterpret_cast<const Read*>(values + head);
  each_ahead<kAhead>(
      thread, n_whole, n_threads, [&](u64 i) { return wide[i]; },
      [&](u64 i, const Read& read) {
        DRUN_UNROLL for (unsigned k = 0; k < kWidth; ++k) use(head + i * kWidth + k, read.values[k]);
      });
  const u64 edge = edge_of(thread, head, n_whole * kWidth);
  if (edge < n) use(edge, values[edge]);
}

// This thread's part of into[i] = f(from[i]). Writes 16 bytes at a time, or reads as many and writes fewer; reads
// single elements if `from` is not aligned where `into` is.
template <typename From, typename Into, typename F>
DRUN_DEVICE void map(unsigned thread, const From* from, Into* into, u64 n, F f) {
  constexpr unsigned kWidth = kWidthOf<From> < kWidthOf<Into> ? kWidthOf<From> : kWidthOf<Into>;
  using Read = Several<From, kWidth>;
  using Written = Several<Into, kWidth>;
  const u64 head = n_until_aligned<Written>(into, n), n_whole = (n - head) / kWidth;
  const From* const rest = from + head;
  const auto* const wide_from = reinterpret_cast<const Read*>(rest);
  auto* const wide_into = reinterpret_cast<Written*>(into + head);
  const auto write = [&](u64 i, const Read& read) {
    Written written;
    DRUN_UNROLL for (unsigned k = 0; k < kWidth; ++k) written.values[k] = f(read.values[k]);
    wide_into[i] = written;
  };
  if (are_aligned(wide_from)) {
    constexpr unsigned kWanted = kAhead * 16 / sizeof(Read), kReads = kWanted < kSingleAhead ? kWanted : kSingleAhead;
    each_ahead<kReads>(
        thread, n_whole, kThreads, [&](u64 i) { return wide_from[i]; }, write);
  } else {
    each_ahead<kAhead>(
        thread, n_whole, kThreads,
        [&](u64 i) {
          Read read;
          DRUN_UNROLL for (unsigned k = 0; k < kWidth; ++k) read.values[k] = rest[i * kWidth + k];
          return read;
        },
        write);
  }
  const u64 edge = edge_of(thread, head, n_whole * kWidth);
  if (edge < n) into[edge] = f(from[edge]);
}

// This thread's part of into[i] = from[i]: by words, if both are aligned for that.
template <typename T>
DRUN_DEVICE void copy(unsigned thread, const T* from, T* into, u64 n) {
  const auto same = [](auto value) { return value; };
  if constexpr (sizeof(T) >= sizeof(u32)) {
    map(thread, from, into, n, same);
  } else {
    constexpr u64 kInWord = sizeof(u32) / sizeof(T);
    const auto* const words = reinterpret_cast<const u32*>(from);
    auto* const words_into = reinterpret_cast<u32*>(into);
    const u64 n_words = are_aligned(words, words_into) ? n / kInWord : 0;
    map(thread, words, words_into, n_words, same);
    each_ahead<kSingleAhead>(
        n_words * kInWord + thread, n, kThreads, [&](u64 i) { return from[i]; },
        [&](u64 i, T value) { into[i] = value; });
  }
}

// This thread's part of into[i] = f(a[i], b[i]), in the same way. `into` may be a or b.
template <typename T, typename F>
DRUN_DEVICE void map_pairs(unsigned thread, const T* a, const T* b, T* into, u64 n, F f) {
  constexpr unsigned kWidth = kWidthOf<T>;
  using Vector = Several<T, kWidth>;
  struct Vectors {
    Vector a, b;
  };
  struct Pair {
    T a, b;
  };
  const auto* const wide_a = reinterpret_cast<const Vector*>(a);
  const auto* const wide_b = reinterpret_cast<const Vector*>(b);
  auto* const wide_into = reinterpret_cast<Vector*>(into);
  const u64 n_whole = are_aligned(wide_a, wide_b, wide_into) ? n / kWidth : 0;
  each_ahead<kAhead / 2>(
      thread, n_whole, kThreads,
      [&](u64 i) {
        return Vectors{wide_a[i], wide_b[i]};
      },
      [&](u64 i, const Vectors& read) {
        Vector written;
        DRUN_UNROLL for (unsigned k = 0; k < kWidth; ++k) written.values[k] = f(read.a.values[k], read.b.values[k]);
        wide_into[i] = written;
      });
  each_ahead<kSingleAhead / 2>(
      n_whole * kWidth + thread, n, kThreads,
      [&](u64 i) {
        return Pair{a[i], b[i]};
      },
      [&](u64 i, const Pair& pair) { into[i] = f(pair.a, pair.b); });
}

}  // namespace drun::runtime::gpu
