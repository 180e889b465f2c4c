// dlopen, in a file of its own: a static program that has libdrun in it can bring another one, and does without libc's
// loader, which would want the glibc that it was linked with.
#pragma once

namespace drun::runtime::gpu {

// As dlopen; why it failed is dlerror's to say.
void* open_library(const char* path, int flags);

}  // namespace drun::runtime::gpu
