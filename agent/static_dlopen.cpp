// The agent is static and never loads libraries. As the worker of `drun bench` it contains libdrun, which opens the
// GPU driver by this function. This definition replaces libdrun's own.
#include "runtime/src/gpu/open_library.h"

namespace drun::runtime::gpu {

void* open_library(const char*, int) { return nullptr; }

}  // namespace drun::runtime::gpu
