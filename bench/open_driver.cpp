#include "bench/open_driver.h"

#include <dlfcn.h>

namespace drun::bench {

void* open_driver() { return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); }

}  // namespace drun::bench
