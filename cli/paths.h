// Paths as the user means them.
#pragma once

#include <string>

namespace drun::cli {

// By the user's name for it ($PWD), if that is this directory: with symbolic links it may be the name that all hosts
// share.
std::string current_directory();
// "" stays "".
std::string absolute(const std::string& path);

}  // namespace drun::cli
