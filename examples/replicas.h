// Tests the model's accuracy and if all ranks have the same model. For train.cpp and train_cuda.cu.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "drun/drun.hpp"
#include "examples/digits.h"
#include "examples/network.h"
#include "examples/samples.h"

namespace example {

// Collective. Each rank tests its part of the test images.
inline double test_accuracy(drun::Communicator& all, Network& network, const Digits& digits,
                            const std::vector<std::size_t>& test) {
  const auto [from, to] = part(test.size(), all.rank(), all.size());
  Result result;
  for (std::size_t i = from; i < to; ++i) {
    network.add_sample(digits.image(test[i]), digits.labels[test[i]], nullptr, result);
  }
  const auto n_correct = all.allreduce(static_cast<std::int64_t>(result.n_correct), DRUN_SUM, {"accuracy"});
  return static_cast<double>(n_correct) / static_cast<double>(test.size());
}

// FNV-1a over the bits.
inline std::uint64_t checksum(const std::vector<double>& values) {
  std::uint64_t hash = 14695981039346656037u;
  for (const double value : values) {
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  }
  return hash;
}

// Collective. Returns true if all ranks have the same model, bit by bit; rank 0 prints it.
inline bool tell_whether_same(drun::Communicator& all, const Network& network) {
  const std::uint64_t own = checksum(network.parameters());
  const auto sums = all.allgather(own);
  const auto n_different =
      std::count_if(sums.begin(), sums.end(), [&](std::uint64_t sum) { return sum != sums.front(); });
  if (all.rank() == 0 && n_different == 0) {
    std::printf("checksum %016llx, the same on %d of %d ranks\n", static_cast<unsigned long long>(own), all.size(),
                all.size());
  } else if (all.rank() == 0) {
    std::printf("checksums differ: %td of %d ranks have another model than rank 0\n", n_different, all.size());
  }
  return n_different == 0;
}

}  // namespace example
