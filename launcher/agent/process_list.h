// The processes of this host as /proc shows them, with what says which job they are of. Names decide nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace drun::agent {

// ---- the texts of /proc/PID: pure

struct ProcessStat {
  pid_t parent = 0;
  char state = '?';         // the letter
  bool over = false;        // a zombie, or dead. A leader that ended before its threads is not over
  std::uint64_t start = 0;  // clock ticks since boot; with the pid it tells processes apart for good
  std::uint64_t cpu = 0;    // clock ticks, in user mode and in the kernel
  std::string name;         // comm
};
std::optional<ProcessStat> parse_stat(std::string_view stat);
std::optional<std::uint32_t> parse_real_uid(std::string_view status);

// What a job leaves in the environment of all that it starts.
struct ProcessMark {
  std::string job_id;  // "" = of no job
  int rank = -1;       // -1 = unknown
};
ProcessMark parse_environment(std::string_view environment);
// Words separated by spaces, unprintable bytes as '?', at most `limit` bytes; "[name]" if there is no command line.
std::string printable_command(std::string_view cmdline, const std::string& name, std::size_t limit);

// ---- the list

// "/proc/PID/NAME".
std::string proc_file(pid_t pid, const char* name);

// Every process of this PID namespace, in no order, until `look` returns false.
void for_each_pid(const std::function<bool(pid_t pid)>& look);

struct Process {
  ProcessStat stat;
  std::uint32_t uid = 0;
  ProcessMark mark;  // by environment, else by cgroup; only read for the users that were asked for
  std::string command;
};
using ProcessList = std::map<pid_t, Process>;

// One pass over /proc. `uid`: whose environments to read; nothing = of all users. A parent that ended during the pass
// is not missed: its children are looked up again.
ProcessList list_processes(std::optional<std::uint32_t> uid);

// The process that has the pid now.
std::optional<ProcessStat> stat_of(pid_t pid);

// Clock ticks since boot, as ProcessStat has them.
std::uint64_t now_in_ticks();
std::uint64_t ticks_per_second();

}  // namespace drun::agent
