// Arithmetic of the reductions on host memory. Pure. Integers wrap; min and max hand on NaN.
#pragma once

#include <cstddef>

#include "runtime/include/drun/drun.h"

namespace drun::runtime {

// into[i] = into[i] op from[i]; AVG adds. Precondition: can_reduce(dtype). No alignment is required of either.
void accumulate(void* into, const void* from, std::size_t count, drun_dtype dtype, drun_op op);
// What is left to do once all ranks are in: AVG divides by `size`, integers truncate.
void finish(void* data, std::size_t count, drun_dtype dtype, drun_op op, int size);

}  // namespace drun::runtime
