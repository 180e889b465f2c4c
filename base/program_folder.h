// The folder of this process's executable.
#pragma once

#include <string>

namespace drun {

// Without a slash at its end; "." if the kernel does not tell.
std::string program_folder();

}  // namespace drun
