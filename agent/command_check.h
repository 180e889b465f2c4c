// Can the command be started here? Asked on every host before anything is started on any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/messages.h"

namespace drun::agent {

// The file that execve will be given: argv0 itself if it has a slash (relative to `directory`), else the first
// executable of that name in PATH.
Result<std::string> find_command(const std::string& argv0, const std::map<std::string, std::string>& environment,
                                 const std::string& directory);

// Enters the working directory (the agent stays there: workers inherit it) and looks for the command.
std::vector<control::Problem> check_command(const control::Prepare& job);

}  // namespace drun::agent
