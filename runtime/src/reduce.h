// Arithmetic of the reductions on host memory. Pure. Integers wrap; min and max propagate NaN.
#pragma once

#include <cstddef>

#include "runtime/include/drun/drun.h"
#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// into[i] = into[i] op from[i]; AVG adds. Neither array need be aligned. Callers reduce halves as f32 (reduced_as),
// here and below.
void accumulate(void* into, const void* from, std::size_t count, drun_dtype dtype, drun_op op);
// into[i] = a[i] op b[i]. `into` may be `a` or `b`, but must not overlap them otherwise.
void combine(void* into, const void* a, const void* b, std::size_t count, drun_dtype dtype, drun_op op);
// Completes a reduction once all ranks are in: AVG divides by `size`; integers truncate.
void finish(void* data, std::size_t count, drun_dtype dtype, drun_op op, int size);
// Completes the reduction of the contributions of `size` members, unless this is a part of a call to which others
// contribute too.
void finish(const Operation& operation, const Span& data, int size);
// data[i] *= factor, for f32 and f64.
void scale(void* data, std::size_t count, drun_dtype dtype, double factor);

}  // namespace drun::runtime
