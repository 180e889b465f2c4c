// The elements that the ranks have sent of some tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "drun/training/tensor_list.hpp"
#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {
namespace training {

// Indices and values, ordered by rank, then by tensor.
template <typename T, typename Index>
struct SparseParts {
  std::vector<Index> indices;
  std::vector<T> values;
};

[[noreturn]] inline void refuse_part(const Tensor& tensor, std::size_t rank, const std::string& what) {
  const std::string text = "tensor '" + tensor.name + "': rank " + std::to_string(rank) + " sent " + what;
  throw Error(DRUN_ERROR_PEER, text.c_str(), static_cast<int>(rank), "");
}

// Number of elements that are sent of each tensor.
struct SparseCounts {
  SparseCounts(std::size_t n_tensors, std::size_t n_ranks)
      : own(n_tensors), all(n_tensors * n_ranks), of_rank(n_ranks) {}

  // Collective: computes the other counts from `own`. Throws DRUN_ERROR_PEER if a rank sends more elements of a tensor
  // than it has.
  void exchange(Transport& transport, const std::vector<Tensor>& tensors, const std::string& name) {
    transport.allgather(own.data(), all.data(), own.size(), DRUN_UINT64, name);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Tensor& tensor = tensors[i % own.size()];
      if (all[i] > tensor.count) {
        refuse_part(tensor, i / own.size(),
                    std::to_string(all[i]) + " values of " + std::to_string(tensor.count) + " elements");
      }
      of_rank[i / own.size()] += all[i];
      total += all[i];
    }
  }

  std::vector<std::uint64_t> own;    // of this rank, by tensor
  std::vector<std::uint64_t> all;    // by rank, then by tensor
  std::vector<std::size_t> of_rank;  // by rank, over all tensors
  std::size_t total = 0;
};

}  // namespace training
}  // namespace v0
}  // namespace drun
