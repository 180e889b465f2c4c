// The agent is two processes. The guard is the parent: it starts the agent proper, and each watches the other by a pipe
// with heartbeats. Whichever dies or goes silent is ended by the other, which then ends everything.
#pragma once

#include <functional>

#include "base/fd.h"
#include "launcher/agent/sweep.h"

namespace drun::agent {

// What the agent proper holds of its guard.
struct GuardLink {
  Fd from_guard;  // a byte per second; EOF = the guard is gone
  Fd to_guard;    // the same the other way
  int guard_pid = 0;
};

// Silence of the other side, in seconds of our own running time: a suspended machine does not count. Shorter than the
// shortest sensible --heartbeat-timeout: what is frozen is gone when drun notices.
inline constexpr int kGuardSilenceLimit = 8;

// Tells the guard what the workers' environment says, once and before the first of them starts, so that it finds them
// without the agent.
void tell_guard(const GuardLink& link, const JobMark& mark);

// Forks. The child runs `agent` and exits with its result; the parent is the guard and returns the status to exit with,
// after the last descendant is gone. The guard goes by another process name, so that a careless `pkill drun-agent`
// spares it, and the agent has a process group of its own, so that no signal to a group ends both.
int run_guarded(const std::function<int(GuardLink)>& agent, char** argv);

}  // namespace drun::agent
