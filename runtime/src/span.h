// Elements in memory, in the type in which they travel, which may differ from the type of the call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/src/dtype.h"

namespace drun::runtime {

struct Span {
  char* data = nullptr;
  std::size_t count = 0;
  drun_dtype dtype = DRUN_INT8;

  std::size_t n_bytes() const { return count * size_of(dtype); }
  Span part(std::size_t first, std::size_t n) const { return {data + first * size_of(dtype), n, dtype}; }
};

// The address `n_bytes` past the start of a user's buffer.
inline const char* at(const void* memory, std::size_t n_bytes) { return static_cast<const char*>(memory) + n_bytes; }
inline char* at(void* memory, std::size_t n_bytes) { return static_cast<char*>(memory) + n_bytes; }

// A piece of a buffer, in bytes.
struct Block {
  std::size_t offset = 0, n_bytes = 0;
};

// One past the last byte of all blocks.
inline std::size_t end_of(const std::vector<Block>& blocks) {
  std::size_t end = 0;
  for (const Block& block : blocks) {
    if (block.n_bytes > 0) end = std::max(end, block.offset + block.n_bytes);
  }
  return end;
}

// First element of part `i` if `count` elements are divided into `n_parts` as evenly as possible; the end for i ==
// n_parts.
inline std::size_t part_begin(std::size_t count, std::size_t n_parts, std::size_t i) {
  return count / n_parts * i + std::min(i, count % n_parts);
}
inline std::vector<Block> even_blocks(const Span& data, std::size_t n_blocks) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const std::size_t begin = part_begin(data.count, n_blocks, i), end = part_begin(data.count, n_blocks, i + 1);
    blocks.push_back({begin * size_of(data.dtype), (end - begin) * size_of(data.dtype)});
  }
  return blocks;
}
inline std::vector<Block> equal_blocks(std::size_t n_blocks, std::size_t n_bytes) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < n_blocks; ++i) blocks.push_back({i * n_bytes, n_bytes});
  return blocks;
}

}  // namespace drun::runtime
