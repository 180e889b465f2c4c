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
  std::string file;  // what execve gets
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  bool wants_stdin = false;
  bool pty = false;
  TerminalSize window;  // of the pty
  mode_t umask = 022;
  std::vector<int> cpus;  // those that it may run on; empty: as the agent
  int cgroup_procs = -1;  // of the cgroup to run in; if it can't be entered the worker runs without
};

// Our ends. With a pty stdin and stdout are both the master (two descriptors of it) and stderr is none.
struct WorkerProcess {
  pid_t pid = 0;
  Fd stdin_end, stdout_end, stderr_end;
};

// The child: its own process group (its own session with a pty), killed by the kernel if the agent's thread dies,
// default signals, no descriptor above 2. An exec that fails is an error here: cause is the step and errno's words,
// code kNotFound or kNotExecutable.
Result<WorkerProcess> start_worker(const WorkerStart& start);

}  // namespace drun::agent
