// Ending every descendant of this process, also those that escaped by setsid or a double fork. Works because guard and
// agent are child subreapers: whatever its parents do, a descendant's ancestor chain ends here.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/asio.h"

namespace drun::agent {

// Makes this process the reaper of its orphaned descendants.
void become_subreaper();

// Every living descendant of this process, from one pass over /proc; zombies are left out.
std::vector<pid_t> descendants();

using Reaped = std::function<void(pid_t pid, int wait_status)>;

// SIGKILL to all descendants, reap, repeat until waitpid says that there is no child (which for a subreaper proves that
// there is no descendant) or the deadline passes. Blocks. Returns how many were killed.
std::size_t sweep(Deadline deadline, const Reaped& reaped);

// Reaps all that have ended, without waiting.
void reap_ended(const Reaped& reaped);

}  // namespace drun::agent
