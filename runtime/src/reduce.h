// Arithmetic of the reductions on host memory. Pure. Integers wrap; min and max hand on NaN.
#pragma once

#include <cstddef>

#include "runtime/include/drun/drun.h"

namespace drun::runtime {

// into[i] = into[i] op from[i]; AVG adds. No alignment is required of either. Halves
// are reduced as f32 (reduced_as), here and below.
void accumulate(void* into, const void* from, std::size_t count, drun_dtype dtype, drun_op op);
// What is left to do once all ranks are in: AVG divides by `size`, integers truncate.
void finish(void* data, std::size_t count, drun_dtype dtype, drun_op op, int size);
// data[i] *= factor, of f32 and f64.
void scale(void* data, std::size_t count, drun_dtype dtype, double factor);

}  // namespace drun::runtime
