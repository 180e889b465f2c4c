// The agent is two processes. The guard is the parent: it starts the agent proper, and each watches the other by a pipe
// with heartbeats. Whichever dies or goes silent is ended by the other, which then ends everything.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/sweep.h"
#include "base/fd.h"

namespace drun::agent {

// What the agent proper holds of its guard.
struct GuardLink {
  Fd from_guard;  // a byte per second; EOF = the guard is gone
  Fd to_guard;    // the same the other way
  int guard_pid = 0;
};

// What the agent sends by its pipe: '.' says that it lives. A letter, a text and '\n' tell what it can't take away once
// it is dead: "J" the job's id, "S" the directory of its socket, "C" the cgroup that it is about to make.
class AgentWords {
 public:
  void push(std::string_view bytes);
  const std::string& cgroup() const { return cgroup_; }  // "" = none
  const std::string& socket_directory() const { return socket_directory_; }
  JobMark mark() const;  // of its workers

 private:
  std::string line_;
  std::string job_id_;
  std::string cgroup_;
  std::string socket_directory_;
};

// Silence of the other side, in seconds of our own running time: a suspended machine does not count. Shorter than the
// shortest sensible --heartbeat-timeout: what is frozen is gone when drun notices.
inline constexpr int kGuardSilenceLimit = 8;

// The other end: false if the guard can't be told.
bool tell_guard(const GuardLink& guard, char what, const std::string& text);

// Forks. The child runs `agent` and exits with its result; the parent is the guard and exits with the same status after
// the last descendant is gone. The guard goes by another process name, so that a careless `pkill drun-agent`
// spares it, and the agent has a process group of its own, so that no signal to a group ends both.
[[noreturn]] void run_guarded(const std::function<int(GuardLink)>& agent, char** argv);

}  // namespace drun::agent
