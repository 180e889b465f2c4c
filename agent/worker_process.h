// One worker: a child process in its own process group with its standard streams on pipes (or a pty).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/terminal.h"

namespace drun::agent {

struct WorkerStart {
  std::string file;       // path passed to execve
  std::string directory;  // working directory; "" = the agent's
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
  Fd exec_report;  // exec_result() of what can be read from it until EOF
};

// Forks. The child has its own process group (its own session with a pty), default signals and no descriptor above 2;
// the kernel kills it if the agent's thread dies. Never waits for the child, because its chdir and its exec may hang on
// a dead network file system.
Result<WorkerProcess> start_worker(const WorkerStart& start);

// The result of the exec, from what the child wrote to exec_report: nothing, if it executes `file` now (or was killed
// before). The error's cause is the step and the text of errno, its code kNotFound or kNotExecutable; the child has
// exited with 127 and must be reaped.
Result<void> exec_result(std::string_view report, const std::string& file);

}  // namespace drun::agent
