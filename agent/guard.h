// The agent is two processes. The guard is the parent: it starts the agent proper, and each watches the other by a
// pipe with heartbeats. If one dies or goes silent, the other kills it and then ends everything.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/sweep.h"
#include "base/fd.h"

namespace drun::agent {

// The agent's ends of the pipes to its guard.
struct GuardLink {
  Fd from_guard;  // a byte per second; EOF = the guard is gone
  Fd to_guard;    // the same in the other direction
  int guard_pid = 0;
  Fd guard_process;  // its pidfd; none before Linux 5.3
};

// Parses what the agent sends to the guard. '.' is a heartbeat. A letter, a text and '\n' name what the guard must
// clean up if the agent dies: "J" the job id, "S" the directory of its socket, "C" the cgroup that it is about to
// create.
class GuardMessages {
 public:
  void push(std::string_view bytes);
  const std::string& cgroup() const { return cgroup_; }  // "" = none
  const std::string& socket_directory() const { return socket_directory_; }
  JobMark mark() const;  // of the agent's workers

 private:
  std::string line_;
  std::string job_id_;
  std::string cgroup_;
  std::string socket_directory_;
};

// Maximum silence of the other process, in seconds of our own running time: a suspended machine does not count.
// Shorter than the shortest sensible --heartbeat-timeout, so that a frozen process is gone when drun notices.
inline constexpr int kGuardSilenceLimit = 8;

// Sends a message that GuardMessages parses. False if it can't be sent.
bool notify_guard(const GuardLink& guard, char what, const std::string& text);

// Forks. The child runs `agent` and exits with its result; the parent is the guard and exits with the same status
// after the last descendant is gone. The guard has another process name, so that a careless `pkill drun-agent` spares
// it, and the agent has its own process group, so that no signal to a group ends both.
[[noreturn]] void run_guarded(const std::function<int(GuardLink)>& agent, char** argv);

}  // namespace drun::agent
