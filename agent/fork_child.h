// Forks a child of the agent.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/blocked_signals.h"

namespace drun::agent {

// As fork(). The child has default signal handlers before it can get a signal, because Asio's write to a pipe that the
// agent reads; the kernel kills it if the agent's thread dies.
inline pid_t fork_child() {
  const pid_t parent = ::getpid();
  const BlockedSignals blocked;
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
  return 0;
}

}  // namespace drun::agent
