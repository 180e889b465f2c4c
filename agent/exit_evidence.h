// Evidence of how a worker ended, beyond its exit status.
#pragma once

#include <functional>
#include <string>

#include "agent/oom_watch.h"
#include "control/messages.h"

namespace drun::agent {

// Adds to the report of a worker that failed of its own accord: the kernel's report, if it was killed, and the contents
// of its error file.
void add_evidence(control::Exited& report, OomWatch& oom, const std::function<std::string()>& read_error_file);

// The contents of the regular file of that name in the open directory, at most 64 KiB; "" if it is something else.
// Never waits, whatever the worker has put there: a FIFO, a link to a dead network file system.
std::string read_error_file(int directory, const std::string& name);

}  // namespace drun::agent
