// Evidence of how a worker ended, beyond its exit status.
#pragma once

#include <string>

#include "agent/oom_watch.h"
#include "control/messages.h"

namespace drun::agent {

// Adds to the report of a worker that failed of its own accord: the kernel's report, if it was killed, and the contents
// of `error_file`, if there is such a file.
void add_evidence(control::Exited& report, OomWatch& oom, const std::string& error_file);

}  // namespace drun::agent
