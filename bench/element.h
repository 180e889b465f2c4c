// Numbers as elements of any type and back, in double precision. Its own conversions, not libdrun's: what is checked
// must not be what checks. Pure.
#pragma once

#include <cstddef>

#include "runtime/include/drun/drun.h"

namespace drun::bench {

// Rounded to nearest, ties to even; integers must be in range. No alignment is needed.
void encode(double value, drun_dtype dtype, void* into);
double decode(const void* from, drun_dtype dtype);

bool is_integer(drun_dtype dtype);
bool is_unsigned(drun_dtype dtype);
// What an integer of this type holds of `value`, a whole number: it wraps around.
double wrapped(double value, drun_dtype dtype);
// How far, in parts of the value, a result may be off: one rounding; 0 for integers.
double tolerance(drun_dtype dtype);

}  // namespace drun::bench
