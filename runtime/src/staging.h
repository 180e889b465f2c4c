// Conversion between the user's buffers of a reduction and the memory that backends work on: types and scales, in
// pieces, so that the memory that a call needs beside the user's is bounded.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// Maximum number of elements processed at once where a reduction can't work in the user's buffer. The same on all
// ranks.
inline constexpr std::size_t kPieceElements = 4u << 20;

// Converts the user's elements to the form in which they travel: halves are widened to f32, and all are prescaled.
// `into` has room for them in the type reduced_as(operation.dtype); it may be `from` if that is the same type.
void stage(const Operation& operation, const void* from, void* into, std::size_t count);
// Converts back: postscales, and rounds once.
void unstage(const Operation& operation, void* from, void* into, std::size_t count);

// Memory for one piece, reused between calls.
class Scratch {
 public:
  char* of(std::size_t n_bytes) {
    if (n_bytes > n_bytes_) {
      memory_.reset();  // free it before allocating the new one
      n_bytes_ = 0;
      memory_.reset(new char[n_bytes]);
      n_bytes_ = n_bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<char[]> memory_;
  std::size_t n_bytes_ = 0;
};

}  // namespace drun::runtime
