// What the runtime knows about element types and reductions. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/include/drun/drun.h"

namespace drun::runtime {

bool is_dtype(int value);
bool is_op(int value);
std::size_t size_of(drun_dtype dtype);
const char* name_of(drun_dtype dtype);  // "f32"
const char* name_of(drun_op op);        // "sum"
// The type in which values of this type travel and are added up in reductions: f32 for halves, else itself.
drun_dtype reduced_as(drun_dtype dtype);

}  // namespace drun::runtime
