// dlopen, in a separate file: a static program that contains libdrun can replace it, and so avoid libc's loader, which
// would require the glibc that the program was linked with.
#pragma once

namespace drun::runtime::gpu {

// As dlopen; dlerror() explains a failure.
void* open_library(const char* path, int flags);

}  // namespace drun::runtime::gpu
