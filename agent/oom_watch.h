// Detects that a worker was killed by the kernel's out-of-memory killer, as far as an ordinary user can know: from
// the counter of our cgroup (v2: memory.events, v1: memory.oom_control), and from the kernel log if it is readable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cgroup.h"
#include "base/fd.h"

namespace drun::agent {

// For each mount the files that count OOM kills in our cgroup and its ancestors, innermost first. Not all of them need
// exist. The first one that does counts the kills of our processes, those further out also the kills of others. Pure.
std::vector<std::vector<std::string>> oom_counter_files(const CgroupFiles& files);
// The count in such a file: "oom_kill 3". Pure; 0 if it has none.
std::uint64_t oom_kills(std::string_view text);

class OomWatch {
 public:
  explicit OomWatch(const CgroupFiles& files);  // earlier kills do not count
  // The evidence, in words, that the OOM killer ended a process that SIGKILL has just ended; "" if there is none. Each
  // of several that were killed at once has its own. The counter does not say whom it counts: a kill of a worker's
  // child, say, is evidence for the next worker that is killed, by whomever.
  std::string evidence(pid_t pid);

 private:
  struct Counter {
    std::string file;
    std::uint64_t explained = 0;  // the count at the start, and a kill for each process that got it as evidence
  };
  void read_kernel_log();

  std::vector<Counter> counters_;
  std::map<pid_t, std::string> killed_;  // lines of the kernel log, by the process that they name
  Fd kernel_log_;
};

}  // namespace drun::agent
