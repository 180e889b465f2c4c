// The processes of this host as /proc shows them, with what says which job they are of. Names decide nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/process_stat.h"

namespace drun::agent {

// ---- the texts of /proc/PID: pure

std::optional<std::uint32_t> parse_real_uid(std::string_view status);

// What a job leaves in the environment of all that it starts.
struct JobOfProcess {
  std::string job_id;  // "" = of no job
  int rank = -1;       // -1 = unknown
};
JobOfProcess parse_environment(std::string_view environment);
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
  JobOfProcess mark;  // by environment, else by cgroup; only read for the users that were asked for
  std::string command;
};
using ProcessList = std::map<pid_t, Process>;

// One pass over /proc. `uid`: whose environments to read; nothing = of all users. A parent that ended during the pass
// is not missed: its children are looked up again.
ProcessList list_processes(std::optional<std::uint32_t> uid);

// Clock ticks since boot, as ProcessStat has them.
std::uint64_t now_in_ticks();
std::uint64_t ticks_per_second();

}  // namespace drun::agent
