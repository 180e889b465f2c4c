// Describes what the workers of this host are doing: their processes from /proc, and their stacks from a tool
// installed on the host (py-spy for Python, eu-stack, gdb), which runs as a child with a deadline and a limit on its
// output.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/tool.h"
#include "base/asio.h"
#include "control/messages.h"

namespace drun::agent {

// Owned by the agent; runs on its thread. stop() ends the tools, and thereby describe().
class SnapshotReader {
 public:
  struct Subject {
    std::uint32_t rank = 0;
    pid_t pid = 0;
    bool running = false;
    int wait_status = 0;
  };
  using Send = std::function<void(const control::Described&)>;

  // `path`: directories to search for the tools, as in $PATH; the usual directories are searched after them.
  SnapshotReader(asio::io_context& io, const std::string& path) : io_(io), tools_(io, path) {}
  // Calls `send` once per subject, the last time shortly after the deadline at the latest. If `stacks` is false,
  // reads only /proc.
  Task<void> describe(std::vector<Subject> subjects, bool stacks, Deadline deadline, Send send);
  // Called by the agent's reaper for every pid: a tool's pid may be reused from now on.
  void reaped(pid_t pid) { tools_.reaped(pid); }
  void stop() { tools_.stop(); }

 private:
  struct Question;
  Task<void> take_turns(Question& question);
  Task<void> read_stack(control::ProcessState& process, Deadline deadline);

  asio::io_context& io_;
  Tools tools_;
};

// All processes of this host, from one pass over /proc.
class ProcessTable {
 public:
  static ProcessTable read();
  // The worker and its descendants, nearest first; bounded. Empty if the worker is gone.
  std::vector<control::ProcessState> family_of(pid_t worker) const;

 private:
  std::map<pid_t, control::ProcessState> processes_;
  std::multimap<pid_t, pid_t> children_;
};

}  // namespace drun::agent
