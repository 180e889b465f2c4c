// Was a worker killed by the kernel's out-of-memory killer? As far as an ordinary user can know: the counters of our
// cgroup and of those around it (v2: memory.events, v1: memory.oom_control), and the kernel's log where it is readable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace drun::agent {

// The files that count the kills of the cgroups in `cgroup` (/proc/self/cgroup) as `mountinfo` (/proc/self/mountinfo)
// shows them, innermost first for each mount; not all need exist. Pure.
std::vector<std::string> oom_counter_files(std::string_view cgroup, std::string_view mountinfo);
// The count in such a file: "oom_kill 3". Pure; 0 if it has none.
std::uint64_t oom_kills(std::string_view text);

class OomWatch {
 public:
  OomWatch();  // what happened before does not count
  // For a process that SIGKILL has just ended, in words; "" if nothing speaks for it.
  std::string evidence(pid_t pid);

 private:
  struct Counter {
    std::string file;
    std::uint64_t seen = 0;
  };
  std::vector<Counter> counters_;
  Fd kernel_log_;
};

}  // namespace drun::agent
