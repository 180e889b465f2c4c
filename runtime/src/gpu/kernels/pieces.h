// Kernels over the pieces of a bucket: pack and unpack, with a cast between floats and halves or without.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/device_memory.h"
#include "runtime/src/gpu/kernels/halves.h"
#include "runtime/src/gpu/kernels/magnitude.h"

namespace drun::runtime::gpu {

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

// This thread's part of this block's gaps.
template <typename T>
DRUN_DEVICE void clear_gaps(const Block& block, unsigned thread, const PieceArguments& a) {
  DRUN_NO_UNROLL for (u64 number = block.number(); number < a.n_pieces; number += block.n_blocks()) {
    const PieceArgument& piece = a.pieces[number];
    if (piece.memory != 0) continue;
    T* const gap = at<T>(a.bucket) + piece.begin;
    DRUN_NO_UNROLL for (u64 i = thread; i < piece.count; i += kThreads) gap[i] = 0;
  }
}

template <typename T>
DRUN_DEVICE void pack(const Block& block, const PieceArguments& a) {
  block.last([&](unsigned thread) {
    clear_gaps<T>(block, thread, a);
    each_chunk<T>(block, a,
                  [&](const T* memory, u64 begin, u64 n) { copy(thread, memory, at<T>(a.bucket) + begin, n); });
  });
}

template <typename T>
DRUN_DEVICE void unpack(const Block& block, const PieceArguments& a) {
  block.last([&](unsigned thread) {
    each_chunk<T>(block, a,
                  [&](T* memory, u64 begin, u64 n) { copy(thread, at<const T>(a.bucket) + begin, memory, n); });
  });
}

// training::narrow
template <typename T, typename Half>
DRUN_DEVICE void narrow(const Block& block, const PieceArguments& a) {
  const T limit = static_cast<T>(a.limit), divisor = static_cast<T>(a.factor);
  block.last([&](unsigned thread) {
    clear_gaps<std::uint16_t>(block, thread, a);
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

}  // namespace drun::runtime::gpu
