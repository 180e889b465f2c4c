#include "runtime/src/arguments.h"

#include <algorithm>
#include <limits>

#include "runtime/src/half.h"

namespace drun::runtime {

tl::unexpected<Failure> Arguments::wrong(const std::string& what) const {
  return failure(DRUN_ERROR_ARGUMENT, function_ + std::string(": ") + what);
}

tl::unexpected<Failure> Arguments::no_dtype(int dtype) const {
  return wrong("there is no element type " + std::to_string(dtype));
}

tl::unexpected<Failure> Arguments::too_many(std::size_t count) const {
  return wrong("a count of " + std::to_string(count) + " is too large");
}

tl::unexpected<Failure> Arguments::no_reduction(int op) const {
  return wrong(op == DRUN_ADASUM ? "adasum is for allreduce alone" : "there is no reduction " + std::to_string(op));
}

tl::unexpected<Failure> Arguments::null_pointer(const char* name) const {
  return wrong(std::string(name) + " is a null pointer");
}

Status Arguments::root(int root, int size) const {
  if (root < 0 || root >= size) {
    return wrong("root " + std::to_string(root) + " is not a rank of " + std::to_string(size));
  }
  return {};
}

Outcome<std::vector<Block>> Arguments::blocks(const std::string& names, const std::size_t* counts,
                                              const std::size_t* offsets, int size, drun_dtype dtype,
                                              bool disjoint) const {
  if (!is_dtype(dtype)) return no_dtype(dtype);
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

Status Arguments::scales_of(drun_dtype dtype) const {
  if (is_float(dtype)) return {};
  return wrong(std::string("prescale and postscale are for floating types, not for ") + name_of(dtype));
}

Status Arguments::no_scales(const CallOptions& options) const {
  if (options.prescale != 1 || options.postscale != 1) {
    return wrong("prescale and postscale are for operations that reduce");
  }
  return {};
}

}  // namespace drun::runtime
