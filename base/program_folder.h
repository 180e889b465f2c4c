// Where this process's executable lies.
#pragma once

#include <string>

namespace drun {

// The folder of the executable, without a slash at its end; "." if the kernel does not tell.
std::string program_folder();

}  // namespace drun
