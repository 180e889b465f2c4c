// What /proc/PID/stat says of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drun {

struct ProcessStat {
  pid_t pid = 0;  // as the namespace of pids sees it whose /proc this is
  pid_t parent = 0;
  char state = '?';         // the letter
  bool over = false;        // a zombie, or dead. A leader that ended before its threads is not over
  std::uint64_t start = 0;  // clock ticks since boot; with the pid it tells processes apart for good
  std::uint64_t cpu = 0;    // clock ticks, in user mode and in the kernel
  std::string name;         // comm
};
std::optional<ProcessStat> parse_stat(std::string_view stat);

// The process that has the pid now.
std::optional<ProcessStat> stat_of(pid_t pid);
// The calling process. Its pid is another than getpid()'s where /proc is that of another namespace; there may be none.
std::optional<ProcessStat> own_stat();

}  // namespace drun
