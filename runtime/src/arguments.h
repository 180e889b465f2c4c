// Checks of what a program passes. Pure. Every error names the function and what is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/src/call_options.h"
#include "runtime/src/failure.h"
#include "runtime/src/span.h"

namespace drun::runtime {

class Arguments {
 public:
  explicit Arguments(const char* function) : function_(function) {}

  tl::unexpected<Failure> wrong(const std::string& what) const {
    return failure(DRUN_ERROR_ARGUMENT, function_ + std::string(": ") + what);
  }
  // A type that there is, and `n_blocks` times `count` elements of it that memory could hold.
  Status elements(std::size_t count, drun_dtype dtype, std::size_t n_blocks = 1) const;
  Status reduction(drun_op op) const;
  Status root(int root, int size) const;
  Status buffer(const char* name, const void* buffer, std::size_t n_bytes) const;
  // A block per rank of `size`, in bytes; without `offsets` one behind the other. `disjoint`: none may overlap another.
  // `names` is what the two arrays are called.
  Outcome<std::vector<Block>> blocks(const std::string& names, const std::size_t* counts, const std::size_t* offsets,
                                     int size, drun_dtype dtype, bool disjoint) const;
  // Only reductions scale, and only floating types.
  Status scales(const CallOptions& options, drun_dtype dtype) const;
  Status no_scales(const CallOptions& options) const;

 private:
  const char* function_;
};

bool overlap(const void* a, std::size_t n_bytes_a, const void* b, std::size_t n_bytes_b);

}  // namespace drun::runtime
