// Properties of element types and reductions. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/include/drun/drun.h"
#include "runtime/src/half.h"

namespace drun::runtime {

// Indexed by drun_dtype.
inline constexpr unsigned char kBytesOfTypes[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};

inline bool is_dtype(int value) { return value >= 0 && value < static_cast<int>(sizeof kBytesOfTypes); }
inline bool is_op(int value) { return value >= DRUN_SUM && value <= DRUN_ADASUM; }
inline std::size_t size_of(drun_dtype dtype) { return kBytesOfTypes[dtype]; }
const char* name_of(drun_dtype dtype);  // "f32"
const char* name_of(drun_op op);        // "sum"
// True for f32 and f64.
inline bool is_wide_float(drun_dtype dtype) { return dtype == DRUN_FLOAT32 || dtype == DRUN_FLOAT64; }
inline bool is_float(drun_dtype dtype) { return is_half(dtype) || is_wide_float(dtype); }
// The type in which values of this type travel and are accumulated in reductions: f32 for halves, else itself.
inline drun_dtype reduced_as(drun_dtype dtype) { return is_half(dtype) ? DRUN_FLOAT32 : dtype; }

}  // namespace drun::runtime
