// The agent is static and never loads libraries. As the worker of `drun bench` it has libdrun in it, which looks for
// the driver of GPUs by this; defined here it takes the place of libdrun's own.
#include "runtime/src/gpu/open_library.h"

namespace drun::runtime::gpu {

void* open_library(const char*, int) { return nullptr; }

}  // namespace drun::runtime::gpu
