// One worker: a child process in its own process group with its standard streams on pipes (or a pty).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/terminal.h"

namespace drun::agent {

struct WorkerStart {
  std::string file;  // path passed to execve
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  bool wants_stdin = false;
  bool pty = false;
  TerminalSize window;  // of the pty
  mode_t umask = 022;
  std::vector<int> cpus;  // CPUs that it may run on; empty: the agent's
  int cgroup_procs = -1;  // of the cgroup to enter; on failure the worker runs without it
};

// The agent's ends of the streams. With a pty, stdin and stdout are two descriptors of the master, and stderr is
// closed.
struct WorkerProcess {
  pid_t pid = 0;
  Fd stdin_end, stdout_end, stderr_end;
};

// The child has its own process group (its own session with a pty), default signals and no descriptor above 2; the
// kernel kills it if the agent's thread dies. A failed exec is an error here: its cause is the step and the text of
// errno, its code kNotFound or kNotExecutable.
Result<WorkerProcess> start_worker(const WorkerStart& start);

}  // namespace drun::agent
