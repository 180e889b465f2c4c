// Selections of values on a GPU: the top K, or those above a threshold. Their memory layout, the sample that narrows
// the search, and the order in which the kernels find the values. docs/gpu.md, "Kernels".
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/include/drun/drun.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/kernels/arguments.h"
#include "runtime/src/gpu/work.h"

namespace drun::runtime::gpu {

// Size of the memory of a selection among `count` values.
std::size_t selection_bytes(std::size_t count);
// Arguments of the kernels for values and a selection at these addresses: the selection, its tiles, its list. Pure.
SelectArguments about_selection(const void* values, std::size_t count, drun_dtype dtype, const void* selection);
// Chooses a sample from which a short list with the top K can be made: 1/64 of the values, at least 65536. The sampled
// value of rank sample_rank is below the K-th of all values, with a margin of four standard deviations, for groups
// whose values are all alike. Pure.
void plan_sample(SelectArguments& a);

// Launches the kernels of a selection: they list the large values, if that may help; then find the leading digits of
// the k-th largest value, from the highest digit down; then count the chosen values of each tile.
// `a` is from about_selection(), with a choice. `dtype` must be f32 or f64.
Status find_selection(Work& work, drun_dtype dtype, SelectArguments a, const void* selection);

}  // namespace drun::runtime::gpu
