// libdrun's kernels, emulated on the CPU, one thread after the other.
#pragma once

#include "runtime/src/gpu/kernels/block.h"

namespace drun::runtime::gpu {

// nullptr: no kernel of that name.
const EmulatedKernel* find_kernel(const char* name);

}  // namespace drun::runtime::gpu
