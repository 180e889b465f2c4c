// Shows and ends what earlier jobs left on this host, for `drun clean`.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/fd.h"
#include "control/messages.h"

namespace drun::agent {

// TERM, the grace time, KILL until a look finds nobody, then the directories. Each process is checked against its start
// time right before a signal, so that a pid that is used again is spared. Blocks: the grace time and some seconds more,
// or for good at a process that is stuck in the kernel with its memory locked; hence start_clean().
control::Cleaned clean(const control::Clean& order, pid_t guard);

// clean() in a child process, which writes the encoded control::Cleaned to `reply` and ends.
struct CleanChild {
  pid_t pid = 0;
  Fd reply;
};
Result<CleanChild> start_clean(const control::Clean& order, pid_t guard);

}  // namespace drun::agent
