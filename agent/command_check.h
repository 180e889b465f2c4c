// Checks that the command can be started on this host. Every host checks before any host starts a worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/forked_call.h"
#include "base/error.h"
#include "control/messages.h"

namespace drun::agent {

// The path to pass to execve: argv0 itself if it contains a slash (relative to the current directory; `directory` is
// for the error text), else the first executable of that name in PATH. Reports each file before it is accessed.
Result<std::string> find_command(const std::string& argv0, const std::map<std::string, std::string>& environment,
                                 const std::string& directory, const ReportStep& report);

struct CommandCheck {
  std::string command;  // path passed to execve, relative to the working directory; "" if there are problems
  std::vector<control::Problem> problems;
};
// Changes to the working directory, and checks the command there. May hang on a dead network file system: reports each
// file before it is accessed.
CommandCheck check_command(const control::Prepare& job, const ReportStep& report);

std::string encode(const CommandCheck& check);
Result<CommandCheck> decode_command_check(std::string_view bytes);

}  // namespace drun::agent
