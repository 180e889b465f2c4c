// Decides which tensors travel together. Pure: the result is the same on every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "drun/training/tensor_list.hpp"

namespace drun {
inline namespace v0 {

// Default size of a bucket.
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

namespace training {

inline std::string settings_in_words(const std::string& settings, std::size_t bucket_bytes) {
  return settings + (settings.empty() ? "" : ", ") + "buckets of " + std::to_string(bucket_bytes) + " bytes";
}

// Pieces begin at multiples of this many elements of their bucket, so that GPUs move 16 bytes at once, also if a bucket
// travels as halves.
inline std::size_t alignment_of(drun_dtype dtype) { return size_of(dtype) == 1 ? 16 : 8; }

// Elements [offset, offset + count) of a tensor.
struct Piece {
  std::size_t tensor, offset, count;
  std::size_t place = 0;  // of the first element in its bucket
};

// Pieces of one element type that travel together. The gaps between them travel as zeros.
struct Bucket {
  drun_dtype dtype;
  std::size_t count;  // with the gaps; it begins and ends with a piece
  std::string name;   // first tensor..last tensor
  std::vector<Piece> pieces;
};

// All elements of all tensors.
inline std::vector<Piece> whole(const TensorList& tensors) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i) pieces.push_back({i, 0, tensors[i].count});
  return pieces;
}

// Part `number` of `n_parts` of all elements. The lengths of parts differ by at most one element.
inline std::vector<Piece> part(const TensorList& tensors, std::size_t number, std::size_t n_parts) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) total += tensors[i].count;
  const std::size_t longer = total % n_parts;
  const auto begin_of = [&](std::size_t k) { return total / n_parts * k + std::min(k, longer); };
  const std::size_t from = begin_of(number), to = begin_of(number + 1);
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < tensors.size(); begin += tensors[i].count, ++i) {
    const std::size_t first = std::max(from, begin), last = std::min(to, begin + tensors[i].count);
    if (first < last) pieces.push_back({i, first - begin, last - first});
  }
  return pieces;
}

// Puts pieces into buckets of at most `bucket_bytes`. Splits a piece only if it is larger than that.
inline std::vector<Bucket> lay_out(const TensorList& tensors, const std::vector<Piece>& pieces,
                                   std::size_t bucket_bytes) {
  std::vector<Bucket> buckets;
  for (Piece rest : pieces) {
    const drun_dtype dtype = tensors[rest.tensor].dtype;
    const std::size_t most = std::max<std::size_t>(bucket_bytes / size_of(dtype), 1), alignment = alignment_of(dtype);
    while (rest.count > 0) {
      const std::size_t count = std::min(rest.count, most);
      std::size_t place = buckets.empty() ? 0 : (buckets.back().count + alignment - 1) / alignment * alignment;
      if (buckets.empty() || buckets.back().dtype != dtype || place + count > most) {
        buckets.push_back({dtype, 0, {}, {}});
        place = 0;
      }
      Bucket& bucket = buckets.back();
      bucket.pieces.push_back({rest.tensor, rest.offset, count, place});
      bucket.count = place + count;
      rest.offset += count;
      rest.count -= count;
    }
  }
  for (Bucket& bucket : buckets) {
    const std::size_t first = bucket.pieces.front().tensor, last = bucket.pieces.back().tensor;
    bucket.name = tensors[first].name;
    if (last != first) bucket.name += ".." + tensors[last].name;
  }
  return buckets;
}

}  // namespace training
}  // namespace v0
}  // namespace drun
