#include "runtime/src/gpu/open_library.h"

#include <dlfcn.h>

namespace drun::runtime::gpu {

void* open_library(const char* path, int flags) { return ::dlopen(path, flags); }

}  // namespace drun::runtime::gpu
