// Checks of the arguments that a program passes. Pure. Every error names the function and what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/src/call_options.h"
#include "runtime/src/dtype.h"
#include "runtime/src/failure.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// The checks that every call makes are inline: a function call each would take a good part of the time of a small
// collective.
class Arguments {
 public:
  explicit Arguments(const char* function) : function_(function) {}

  [[gnu::cold]] tl::unexpected<Failure> wrong(const std::string& what) const;
  // Checks that the type exists and that memory could hold `n_blocks` times `count` elements of it.
  Status elements(std::size_t count, drun_dtype dtype, std::size_t n_blocks = 1) const {
    if (!is_dtype(dtype)) return no_dtype(dtype);
    std::size_t n_all = 0;
    if (__builtin_mul_overflow(count, size_of(dtype) * n_blocks, &n_all) || n_all > SIZE_MAX / 2) {
      return too_many(count);
    }
    return {};
  }
  Status reduction(drun_op op) const {
    if (!is_op(op) || op == DRUN_ADASUM) return no_reduction(op);
    return {};
  }
  Status root(int root, int size) const;
  Status buffer(const char* name, const void* buffer, std::size_t n_bytes) const {
    if (buffer == nullptr && n_bytes > 0) return null_pointer(name);
    return {};
  }
  // Returns a block per rank of `size`, in bytes. Without `offsets` the blocks are adjacent. With `disjoint`, blocks
  // must not overlap. `names` is the common name of the two arrays in errors.
  Outcome<std::vector<Block>> blocks(const std::string& names, const std::size_t* counts, const std::size_t* offsets,
                                     int size, drun_dtype dtype, bool disjoint) const;
  // Scales are allowed in reductions only, and for floating types only.
  Status scales(const CallOptions& options, drun_dtype dtype) const {
    if (options.prescale == 1 && options.postscale == 1) return {};
    return scales_of(dtype);
  }
  Status no_scales(const CallOptions& options) const;

 private:
  [[gnu::cold]] tl::unexpected<Failure> no_dtype(int dtype) const;
  [[gnu::cold]] tl::unexpected<Failure> too_many(std::size_t count) const;
  [[gnu::cold]] tl::unexpected<Failure> no_reduction(int op) const;
  [[gnu::cold]] tl::unexpected<Failure> null_pointer(const char* name) const;
  Status scales_of(drun_dtype dtype) const;

  const char* function_;
};

inline bool overlap(const void* a, std::size_t n_bytes_a, const void* b, std::size_t n_bytes_b) {
  const auto from_a = reinterpret_cast<std::uintptr_t>(a), from_b = reinterpret_cast<std::uintptr_t>(b);
  return n_bytes_a > 0 && n_bytes_b > 0 && from_a < from_b + n_bytes_b && from_b < from_a + n_bytes_a;
}

}  // namespace drun::runtime
