// Conversion of halves, f16 (IEEE binary16) and bf16, to f32 and back. Pure. The halves need not be aligned.
#pragma once

#include <cstddef>

#include "runtime/include/drun/drun.h"

namespace drun::runtime {

inline bool is_half(drun_dtype dtype) { return dtype == DRUN_FLOAT16 || dtype == DRUN_BFLOAT16; }

// Exact. Both functions require is_half(dtype).
void widen(const void* from, drun_dtype dtype, float* into, std::size_t count);
// Rounds to nearest, ties to even. NaN stays NaN; values that are too large become infinite.
void narrow(const float* from, void* into, drun_dtype dtype, std::size_t count);

}  // namespace drun::runtime
