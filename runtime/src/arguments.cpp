#include "runtime/src/arguments.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/src/dtype.h"
#include "runtime/src/half.h"

namespace drun::runtime {

Status Arguments::elements(std::size_t count, drun_dtype dtype, std::size_t n_blocks) const {
  if (!is_dtype(dtype)) return wrong("there is no element type " + std::to_string(dtype));
  if (count > std::numeric_limits<std::size_t>::max() / 2 / size_of(dtype) / n_blocks) {
    return wrong("a count of " + std::to_string(count) + " is too large");
  }
  return {};
}

Status Arguments::reduction(drun_op op) const {
  if (!is_op(op)) return wrong("there is no reduction " + std::to_string(op));
  if (op == DRUN_ADASUM) return wrong("adasum is for allreduce alone");
  return {};
}

Status Arguments::root(int root, int size) const {
  if (root < 0 || root >= size) {
    return wrong("root " + std::to_string(root) + " is not a rank of " + std::to_string(size));
  }
  return {};
}

Status Arguments::buffer(const char* name, const void* buffer, std::size_t n_bytes) const {
  if (buffer == nullptr && n_bytes > 0) return wrong(std::string(name) + " is a null pointer");
  return {};
}

Outcome<std::vector<Block>> Arguments::blocks(const std::string& names, const std::size_t* counts,
                                              const std::size_t* offsets, int size, drun_dtype dtype,
                                              bool disjoint) const {
  if (!is_dtype(dtype)) return wrong("there is no element type " + std::to_string(dtype));
  if (counts == nullptr) return wrong(names + "_counts is a null pointer");
  const std::size_t most = std::numeric_limits<std::size_t>::max() / 2 / size_of(dtype);
  std::vector<Block> result;
  std::size_t end = 0;
  for (int rank = 0; rank < size; ++rank) {
    const std::size_t count = counts[rank], offset = offsets != nullptr ? offsets[rank] : end;
    if (count > most || offset > most - count) {
      return wrong(names + "_counts of rank " + std::to_string(rank) + ": " + std::to_string(count) + " elements at " +
                   std::to_string(offset) + " are too many");
    }
    end = offset + count;
    result.push_back({offset * size_of(dtype), count * size_of(dtype)});
  }
  if (!disjoint) return result;
  std::vector<int> order;
  for (int rank = 0; rank < size; ++rank) {
    if (counts[rank] > 0) order.push_back(rank);
  }
  const auto block = [&](int rank) { return result[static_cast<std::size_t>(rank)]; };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return block(a).offset < block(b).offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (block(order[i - 1]).offset + block(order[i - 1]).n_bytes > block(order[i]).offset) {
      return wrong("the blocks of " + names + " for rank " + std::to_string(order[i - 1]) + " and rank " +
                   std::to_string(order[i]) + " overlap");
    }
  }
  return result;
}

Status Arguments::scales(const CallOptions& options, drun_dtype dtype) const {
  const bool is_floating = is_half(dtype) || dtype == DRUN_FLOAT32 || dtype == DRUN_FLOAT64;
  if (!is_floating && (options.prescale != 1 || options.postscale != 1)) {
    return wrong(std::string("prescale and postscale are for floating types, not for ") + name_of(dtype));
  }
  return {};
}

Status Arguments::no_scales(const CallOptions& options) const {
  if (options.prescale != 1 || options.postscale != 1) {
    return wrong("prescale and postscale are for operations that reduce");
  }
  return {};
}

bool overlap(const void* a, std::size_t n_bytes_a, const void* b, std::size_t n_bytes_b) {
  const auto from_a = reinterpret_cast<std::uintptr_t>(a), from_b = reinterpret_cast<std::uintptr_t>(b);
  return n_bytes_a > 0 && n_bytes_b > 0 && from_a < from_b + n_bytes_b && from_b < from_a + n_bytes_a;
}

}  // namespace drun::runtime
