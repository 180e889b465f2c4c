#include "runtime/src/algorithm/choice.h"

#include "runtime/policy/allreduce_sizes.h"

namespace drun::runtime {
std::optional<AllreduceAlgorithm> allreduce_algorithm_named(std::string_view name) {
  if (name == "doubling") return AllreduceAlgorithm::kDoubling;
  if (name == "halving") return AllreduceAlgorithm::kHalving;
  if (name == "ring") return AllreduceAlgorithm::kRing;
  return std::nullopt;
}

AllreduceAlgorithm choose_allreduce(std::size_t n_bytes, std::size_t count, int size) {
  const auto n_ranks = static_cast<std::size_t>(size);
  if (n_bytes <= doubling_bytes(n_ranks) || count < n_ranks) return AllreduceAlgorithm::kDoubling;
  if (n_bytes < ring_bytes(n_ranks)) return AllreduceAlgorithm::kHalving;
  return AllreduceAlgorithm::kRing;
}

}  // namespace drun::runtime
