// Ending every process of the job on this host: all descendants of this process, also those that escaped by setsid or a
// double fork (guard and agent are child subreapers: whatever its parents do, a descendant's ancestor chain ends here),
// and strays: what a service of the host started for a worker, as `docker exec` lets a container engine do.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/asio.h"

namespace drun::agent {

// Makes this process the reaper of its orphaned descendants.
void become_subreaper();

// False proves that there is no descendant either, as this process is a subreaper. Costs no pass over /proc.
bool has_children();

// Every living descendant of this process, from one pass over /proc; zombies are left out.
std::vector<pid_t> descendants();

// What the environment of a worker of this agent says. An empty job_id marks nothing.
struct JobMark {
  std::string job_id;        // DRUN_JOB_ID
  std::string agent_socket;  // DRUN_AGENT: tells this agent's workers from those of another on the same machine
};

// The living processes with that job id in the environment they were started with, and with this agent's socket or
// none, as far as this user may look. Takes a helper process, since looking can hang on a process that is stuck in the
// kernel; without an answer in time there are none.
std::vector<pid_t> strays(const JobMark& mark, Deadline deadline);

using Reaped = std::function<void(pid_t pid, int wait_status)>;

// SIGKILL to all descendants, reap, repeat until waitpid says that there is no child (which for a subreaper proves that
// there is no descendant); then the same for strays; or until the deadline passes. Blocks. Returns how many were
// killed.
std::size_t sweep(Deadline deadline, const Reaped& reaped, const JobMark& mark = {});

// Reaps all that have ended, without waiting.
void reap_ended(const Reaped& reaped);

}  // namespace drun::agent
