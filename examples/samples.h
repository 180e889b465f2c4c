// Assigns samples to ranks. For train.cpp and train_cuda.cu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "examples/random.h"

namespace example {

inline constexpr std::size_t kHidden = 48;

struct Split {
  std::vector<std::size_t> train, test;
};

// Gives the same result on every rank.
inline Split split(std::size_t n_images, std::uint64_t seed) {
  std::vector<std::size_t> order(n_images);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random(seed).shuffle(order);
  const auto n_test = static_cast<std::ptrdiff_t>(n_images / 5);
  return {{order.begin() + n_test, order.end()}, {order.begin(), order.begin() + n_test}};
}

// This rank's part of [0, n).
inline std::pair<std::size_t, std::size_t> part(std::size_t n, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank), s = static_cast<std::size_t>(size);
  return {n * r / s, n * (r + 1) / s};
}

}  // namespace example
