// The contents of /proc/PID/stat.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drun {

struct ProcessStat {
  pid_t pid = 0;  // in the PID namespace of the mounted /proc
  pid_t parent = 0;
  char state = '?';         // the state's letter
  bool over = false;        // dead, or a zombie; not a leader that ended before its threads
  std::uint64_t start = 0;  // clock ticks since boot; unique together with the pid
  std::uint64_t cpu = 0;    // clock ticks, user and kernel mode
  std::string name;         // comm
};
std::optional<ProcessStat> parse_stat(std::string_view stat);

// The process that has the pid now; nothing if there is none.
std::optional<ProcessStat> stat_of(pid_t pid);
// The calling process. If /proc belongs to another PID namespace, the pid differs from getpid() or there is no entry.
std::optional<ProcessStat> own_stat();

}  // namespace drun
