// Shows and ends what earlier jobs left on this host, for `drun clean`.
#pragma once

#include <sys/types.h>

#include "control/messages.h"

namespace drun::agent {

// Lists leftovers and, if the order says so, ends them: TERM, the grace time, KILL until a scan finds no process,
// then the directories. The start time of each process is checked right before a signal, so that a reused pid is
// spared. Blocks for the grace time and some seconds more, or forever on a process that is stuck in the kernel with
// its memory locked: call it in a child (forked_call.h).
control::Cleaned clean(const control::Clean& order, pid_t guard);

}  // namespace drun::agent
