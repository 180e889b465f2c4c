// Ends every process of the job on this host: all descendants of this process, also those that escaped by setsid or a
// double fork (guard and agent are child subreapers: whatever its parents do, a descendant's ancestor chain ends
// here), and strays: processes that a service of the host started for a worker, as a container engine does for
// `docker exec`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/asio.h"

namespace drun::agent {

// Makes this process the reaper of its orphaned descendants.
void become_subreaper();

// False proves that there is no descendant either, because this process is a subreaper. Needs no pass over /proc.
bool has_children();

// Every living descendant of this process, from one pass over /proc; zombies are left out.
std::vector<pid_t> descendants();

// Identifies the workers of this agent by their environment. An empty job_id marks nothing.
struct JobMark {
  std::string job_id;        // DRUN_JOB_ID
  std::string agent_socket;  // DRUN_AGENT: distinguishes agents on the same machine
};

// The living processes whose initial environment has that job id, and this agent's socket or none, as far as this
// user may read it. Forks a helper process, because reading can hang on a process that is stuck in the kernel.
// Returns those that were found in time.
std::vector<pid_t> strays(const JobMark& mark, Deadline deadline);

using Reaped = std::function<void(pid_t pid, int wait_status)>;

struct Swept {
  std::size_t n_killed = 0;
  // Descendants and strays that are still there: "pid 12 (train), in uninterruptible sleep until the kernel lets it
  // go".
  std::vector<std::string> stuck;
};
struct SweepLimits {
  Deadline deadline;
  // For processes in uninterruptible sleep, which SIGKILL does not end: the sweep is over if for this time there have
  // been no others.
  std::chrono::milliseconds stuck{1000};
};
// Sends SIGKILL to all descendants and reaps, until waitpid reports no child (which for a subreaper proves that there
// is no descendant); then does the same for strays. Blocks, up to the limits.
Swept sweep(const SweepLimits& limits, const Reaped& reaped, const JobMark& mark = {});

// True if the process that has this pid started at `start` (ProcessStat::start) and is not over.
bool lives(pid_t pid, std::uint64_t start);

// Sends the signal to the process that had this pid when it started at `start` (ProcessStat::start). A pid alone may be
// that of a later process. True if it was sent.
bool signal_process(pid_t pid, std::uint64_t start, int number);

// Reaps all ended children, without waiting.
void reap_ended(const Reaped& reaped);

}  // namespace drun::agent
