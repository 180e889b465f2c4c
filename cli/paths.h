// Paths as the user means them.
#pragma once

#include <string>

namespace drun::cli {

// By the name that the user went by, if it is this directory: with links it may be the one that all hosts share.
std::string current_directory();
// "" stays "".
std::string absolute(const std::string& path);

}  // namespace drun::cli
