// What earlier jobs left on this host: processes, cgroups that nobody removed, sockets that nobody answers.
//
// A job runs here as long as one of its processes has an agent above it. Everything else that carries the mark of a job
// (DRUN_JOB_ID, its cgroup, or a parent that has it) is left over: a living agent would have taken it down.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_list.h"
#include "base/fd.h"

namespace drun::agent {

struct CleanScope {
  std::optional<std::uint32_t> uid;  // whose; nothing = of all users
  std::string job_id;                // only this job; "" = all
};

struct Leftover {
  pid_t pid = 0;
  std::string job_id;
  int rank = -1;
  bool running = false;  // its job has an agent here
};

// ---- pure

// The one who asks: `self` with all its ancestors, everything below its guard, and if the guard's parent is a drun (on
// the head) everything below that: all may carry the mark of a job in which drun was called.
std::set<pid_t> own_family(const ProcessList& processes, pid_t guard, pid_t self);
// In the order of job, rank, pid. Processes that are over are none.
std::vector<Leftover> find_leftovers(const ProcessList& processes, const CleanScope& scope,
                                     const std::set<pid_t>& own_family);
// "drun-JOB-XXXXXX" as the agent names its socket's directory: the first digits of the job id.
std::optional<std::string> job_of_socket_directory(std::string_view name);
std::optional<std::string> user_name(std::string_view passwd, std::uint32_t uid);

// ---- the system

struct LeftDirectoryFound {
  std::string job_id;  // of a socket's directory only the first digits
  std::string path;
  bool is_cgroup = false;
  bool populated = false;  // a cgroup with somebody in it
  Fd lock;                 // the remover's
};
// May it be that job's?
bool may_be_of(const LeftDirectoryFound& directory, std::string_view job_id);
// Cgroups and socket directories of jobs whose agent does not live, of the scope's users; sockets only our own.
std::vector<LeftDirectoryFound> find_directories(const CleanScope& scope);
bool remove_directory(const LeftDirectoryFound& directory);

}  // namespace drun::agent
