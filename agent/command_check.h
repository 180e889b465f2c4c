// Checks that the command can be started on this host. Every host checks before any host starts a worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/messages.h"

namespace drun::agent {

// The path to pass to execve: argv0 itself if it contains a slash (relative to the current directory; `directory` is
// for the error text), else the first executable of that name in PATH.
Result<std::string> find_command(const std::string& argv0, const std::map<std::string, std::string>& environment,
                                 const std::string& directory);

// Changes to the working directory (the agent stays there, so workers inherit it) and checks the command.
std::vector<control::Problem> check_command(const control::Prepare& job);

}  // namespace drun::agent
