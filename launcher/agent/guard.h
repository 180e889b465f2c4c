// The agent is two processes. The guard is the parent: it starts the agent proper, and each watches the other by a pipe
// with heartbeats. Whichever dies or goes silent is ended by the other, which then ends everything.
#pragma once

#include <functional>

#include "base/fd.h"

namespace drun::agent {

// What the agent proper holds of its guard.
struct GuardLink {
  Fd from_guard;  // a byte per second; EOF = the guard is gone
  Fd to_guard;    // the same the other way
  int guard_pid = 0;
};

// Silence of the other side, in seconds of our own running time: a suspended machine does not count.
inline constexpr int kGuardSilenceLimit = 10;

// Forks. The child runs `agent` and exits with its result; the parent is the guard and returns the status to exit with,
// after the last descendant is gone. The guard goes by another process name, so that a careless `pkill drun-agent`
// spares it.
int run_guarded(const std::function<int(GuardLink)>& agent, char** argv);

}  // namespace drun::agent
