// Opens NVIDIA's driver, in a separate file: a static program that contains the worker can replace it, and so avoid
// libc's loader.
#pragma once

namespace drun::bench {

// The handle of libcuda.so.1, as of dlopen; nullptr if there is none, and dlerror() has the reason.
void* open_driver();

}  // namespace drun::bench
