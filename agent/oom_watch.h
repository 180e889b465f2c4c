// Detects that a worker was killed by the kernel's out-of-memory killer, as far as an ordinary user can know: from
// the counters of our cgroup and its ancestors (v2: memory.events, v1: memory.oom_control), and from the kernel log
// if it is readable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cgroup.h"
#include "base/fd.h"

namespace drun::agent {

// The files that count OOM kills in our cgroups, innermost first for each mount. Not all of them need exist. Pure.
std::vector<std::string> oom_counter_files(const CgroupFiles& files);
// The count in such a file: "oom_kill 3". Pure; 0 if it has none.
std::uint64_t oom_kills(std::string_view text);

class OomWatch {
 public:
  explicit OomWatch(const CgroupFiles& files);  // earlier kills do not count
  // The evidence, in words, that the OOM killer ended a process that SIGKILL has just ended; "" if there is none.
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
