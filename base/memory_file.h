// Anonymous files in memory. C++17.
#pragma once

#include "base/error.h"
#include "base/fd.h"

namespace drun {

// An empty file in memory, close-on-exec. It may be sealed and can't be executed, so that it is also allowed where
// vm.memfd_noexec is 2.
Result<Fd> make_memory_file(const char* name);

}  // namespace drun
