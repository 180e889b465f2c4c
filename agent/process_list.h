// The processes of this host from /proc, and what shows which job they belong to. Process names decide nothing.
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

// A job's mark in the environment of every process that it starts.
struct JobOfProcess {
  std::string job_id;        // "" = no job
  int rank = -1;             // -1 = unknown
  std::string agent_socket;  // DRUN_AGENT; "" = unknown
};
JobOfProcess parse_environment(std::string_view environment);
// The command line: words separated by spaces, unprintable bytes as '?', at most `limit` bytes; "[name]" if there is
// none.
std::string printable_command(std::string_view cmdline, const std::string& name, std::size_t limit);

// ---- the list

// "/proc/PID/NAME".
std::string proc_file(pid_t pid, const char* name);

// Calls `visit` for every process of this PID namespace, in no order, until it returns false.
void for_each_pid(const std::function<bool(pid_t pid)>& visit);

struct Process {
  ProcessStat stat;
  std::uint32_t uid = 0;
  // From the environment, else the cgroup; only read for the users asked for. An environment whose DRUN_AGENT is in a
  // folder that we don't see, nor the process itself, came from another host (a worker called sbatch) or from a job
  // that has ended in order: it is no mark.
  JobOfProcess mark;
  std::string command;
};
using ProcessList = std::map<pid_t, Process>;

// Lists all processes in one pass over /proc. `uid`: whose environments to read; nothing = all users. If a parent
// ended during the pass, its children are read again.
ProcessList list_processes(std::optional<std::uint32_t> uid);

// Clock ticks since boot, as in ProcessStat.
std::uint64_t now_in_ticks();
std::uint64_t ticks_per_second();

}  // namespace drun::agent
