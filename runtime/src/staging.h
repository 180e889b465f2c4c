// Between the user's buffers of a reduction and the memory that backends work on: types, scales, and pieces, so that
// what a call needs beside the user's memory has a bound.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// Of the elements that are dealt with at once where there is no working in the user's buffer. The same on all ranks.
inline constexpr std::size_t kPieceElements = 4u << 20;

// The user's elements as what travels: widened to f32 if they are halves, and prescaled. `into` has the room for them
// in the type reduced_as(operation.dtype); it may be `from` if that is the same type.
void stage(const Operation& operation, const void* from, void* into, std::size_t count);
// Back: postscaled, and rounded, once.
void unstage(const Operation& operation, void* from, void* into, std::size_t count);

// Memory for one piece, kept from call to call.
class Scratch {
 public:
  char* of(std::size_t n_bytes) {
    if (n_bytes > n_bytes_) {
      memory_.reset();  // before the new one is there
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
