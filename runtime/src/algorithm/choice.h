// Which of its algorithms an allreduce over the network uses. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace drun::runtime {

enum class AllreduceAlgorithm { kDoubling, kHalving, kRing };

// "doubling", "halving", "ring".
std::optional<AllreduceAlgorithm> allreduce_algorithm_named(std::string_view name);

// By what all ranks know alike, and nothing else: the choice decides who talks with whom. `count` elements of together
// `n_bytes`, between `size` ranks. The bounds are where measured times cross (docs/benchmarks.md).
AllreduceAlgorithm choose_allreduce(std::size_t n_bytes, std::size_t count, int size);

}  // namespace drun::runtime
