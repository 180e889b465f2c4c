// The agent is static and never loads libraries. As the worker of `drun bench` it contains libdrun and the worker,
// which open the GPU driver by these functions. These definitions replace their own.
#include "bench/open_driver.h"
#include "runtime/src/gpu/open_library.h"

namespace drun::runtime::gpu {

void* open_library(const char*, int) { return nullptr; }

}  // namespace drun::runtime::gpu

namespace drun::bench {

void* open_driver() { return nullptr; }

}  // namespace drun::bench
