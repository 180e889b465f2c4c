// Elements in memory, of the type in which they travel, which need not be the type of the call.
#pragma once

#include <cstddef>

#include "runtime/src/dtype.h"

namespace drun::runtime {

struct Span {
  char* data = nullptr;
  std::size_t count = 0;
  drun_dtype dtype = DRUN_INT8;

  std::size_t n_bytes() const { return count * size_of(dtype); }
  Span part(std::size_t first, std::size_t n) const { return {data + first * size_of(dtype), n, dtype}; }
};

// `n_bytes` behind the start of a user's buffer.
inline const char* at(const void* memory, std::size_t n_bytes) { return static_cast<const char*>(memory) + n_bytes; }
inline char* at(void* memory, std::size_t n_bytes) { return static_cast<char*>(memory) + n_bytes; }

// A piece of a buffer, in bytes.
struct Block {
  std::size_t offset = 0, n_bytes = 0;
};

}  // namespace drun::runtime
