// libdrun's kernels, each thread of them after the other on the processor.
#pragma once

#include "runtime/src/gpu/kernels/block.h"

namespace drun::runtime::gpu {

// nullptr: there is none of that name.
const EmulatedKernel* find_kernel(const char* name);

}  // namespace drun::runtime::gpu
