// Converts numbers in double precision to elements of any type and back. Does not use libdrun's conversions, which
// are what is checked. Pure.
#pragma once

#include <cstddef>

#include "runtime/include/drun/drun.h"

namespace drun::bench {

// Rounded to nearest, ties to even; integers must be in range. No alignment is needed.
void encode(double value, drun_dtype dtype, void* into);
double decode(const void* from, drun_dtype dtype);

bool is_integer(drun_dtype dtype);
bool is_unsigned(drun_dtype dtype);
// `value`, a whole number, wrapped around to the range of this integer type.
double wrapped(double value, drun_dtype dtype);
// Maximum relative error of one rounding: 2^-p for a type with p significant bits, which represents all whole numbers
// up to 2^p; 0 for integers.
double unit_roundoff(drun_dtype dtype);

}  // namespace drun::bench
