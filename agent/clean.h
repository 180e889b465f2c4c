// Shows and ends what earlier jobs left on this host, for `drun clean`.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/fd.h"
#include "control/messages.h"

namespace drun::agent {

// Lists leftovers and, if the order says so, ends them: TERM, the grace time, KILL until a scan finds no process,
// then the directories. The start time of each process is checked right before a signal, so that a reused pid is
// spared. Blocks for the grace time and some seconds more, or forever on a process that is stuck in the kernel with
// its memory locked; hence start_clean().
control::Cleaned clean(const control::Clean& order, pid_t guard);

// Runs clean() in a child process, which writes the encoded control::Cleaned to `reply` and exits.
struct CleanChild {
  pid_t pid = 0;
  Fd reply;
};
Result<CleanChild> start_clean(const control::Clean& order, pid_t guard);

}  // namespace drun::agent
