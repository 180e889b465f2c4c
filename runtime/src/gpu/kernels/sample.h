// Chooses the elements of a sample.
#pragma once

#include <cstdint>

#include "runtime/src/gpu/kernels/arguments.h"
#include "runtime/src/gpu/kernels/block.h"

namespace drun::runtime::gpu {

// Index of the i-th of `n_sampled` elements out of `count`: all of them, or whole groups, one from a pseudorandom place
// in each part of the elements. (Groups at equal distances could be the same columns of each row.) For fewer than 2^40
// elements.
DRUN_DEVICE std::uint64_t sampled(std::uint64_t count, std::uint64_t n_sampled, std::uint64_t i) {
  if (n_sampled == count) return i;
  const std::uint64_t group = i / kSampleGroup, n_parts = n_sampled / kSampleGroup, n_groups = count / kSampleGroup;
  const std::uint64_t begin = group * n_groups / n_parts, end = (group + 1) * n_groups / n_parts;
  const std::uint64_t somewhere = (group * 0x9e3779b97f4a7c15u) >> 32;
  return (begin + somewhere % (end - begin)) * kSampleGroup + i % kSampleGroup;
}

}  // namespace drun::runtime::gpu
