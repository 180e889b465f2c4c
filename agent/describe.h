// What the workers of this host do right now: their processes from /proc, and their stacks by a tool of the host's
// (py-spy for python, eu-stack, gdb), run as a child with a deadline and a bound on its output.
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

// Owned by the agent; its thread. stop() ends the tools, and with them describe().
class Describer {
 public:
  struct Subject {
    std::uint32_t rank = 0;
    pid_t pid = 0;
    bool running = false;
    int wait_status = 0;
  };
  using Send = std::function<void(const control::Described&)>;

  // `path`: where the tools are looked for, as in $PATH; the usual places come behind it.
  Describer(asio::io_context& io, const std::string& path) : io_(io), tools_(io, path) {}
  // Calls `send` once per subject, the last time shortly after the deadline at the latest. `stacks` false: only what
  // /proc says.
  Task<void> describe(std::vector<Subject> subjects, bool stacks, Deadline deadline, Send send);
  // From the agent's reaper: if it was a tool, its pid is nobody's any more.
  void reaped(pid_t pid) { tools_.reaped(pid); }
  void stop() { tools_.stop(); }

 private:
  struct Question;
  Task<void> take_turns(Question& question);
  Task<void> read_stack(control::ProcessState& process, Deadline deadline);
  std::vector<std::string> tool_for(pid_t pid) const;

  asio::io_context& io_;
  Tools tools_;
};

// All processes of this host from one pass over /proc.
class ProcessTable {
 public:
  static ProcessTable read();
  // The worker and its descendants, nearest first, bounded. Empty: it is gone.
  std::vector<control::ProcessState> family_of(pid_t worker) const;

 private:
  std::map<pid_t, control::ProcessState> processes_;
  std::multimap<pid_t, pid_t> children_;
};

}  // namespace drun::agent
