// The choice of an algorithm for an allreduce over the network. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace drun::runtime {

enum class AllreduceAlgorithm { kDoubling, kHalving, kRing };

// "doubling", "halving", "ring".
std::optional<AllreduceAlgorithm> allreduce_algorithm_named(std::string_view name);

// Chooses the algorithm for `count` elements of `n_bytes` in total, between `size` ranks. Depends only on values that
// are the same on all ranks, because the choice decides which ranks exchange data. The bounds are where measured times
// cross (docs/benchmarks.md).
AllreduceAlgorithm choose_allreduce(std::size_t n_bytes, std::size_t count, int size);

}  // namespace drun::runtime
