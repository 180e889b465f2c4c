// The folder of a Python package that has another library's name: --compat horovod.
#pragma once

#include <string>

#include "base/error.h"

namespace drun::cli {

// `program_folder`: of drun's executable. The folder that must come first in PYTHONPATH: drun/compat in the wheel that
// the executable belongs to, or python/drun/compat beside it or in the source tree that it was built in.
Result<std::string> find_compat_folder(const std::string& program_folder);

}  // namespace drun::cli
