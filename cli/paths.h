// Paths as the user means them.
#pragma once

#include <string>

#include "launcher/plan/worker_env.h"

namespace drun::cli {

// By the user's name for it ($PWD), if that is this directory: with symbolic links it may be the name that all hosts
// share.
std::string current_directory();
// "" stays "".
std::string absolute(const std::string& path);
// drun's folder of a kind, by the XDG base directory specification: `variable` "XDG_CACHE_HOME", `below_home` ".cache".
// A relative path in the environment counts as unset. "" = none.
std::string user_folder(const launcher::Environment& env, const char* variable, const char* below_home);

}  // namespace drun::cli
