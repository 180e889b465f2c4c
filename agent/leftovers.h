// Finds what earlier jobs left on this host: processes, cgroups, and directories of sockets that do not answer.
//
// A job runs here as long as one of its processes has an agent above it. Every other process that carries the mark of
// a job (its environment, its cgroup, or an ancestor that has one) is a leftover: a living agent would have ended it.
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
  std::optional<std::uint32_t> uid;  // owner; nothing = all users
  std::string job_id;                // only this job; "" = all
};

struct Leftover {
  pid_t pid = 0;
  std::string job_id;
  int rank = -1;
  bool running = false;  // its job has an agent here
};

// ---- pure

// The processes that must be spared: `self` with all its ancestors, everything below its guard, and if the guard's
// parent is a drun (on the head) everything below that. All of them may carry the mark of a job in which drun was
// called.
std::set<pid_t> own_family(const ProcessList& processes, pid_t guard, pid_t self);
// Sorted by job, rank, pid. Excludes processes that have ended (zombies).
std::vector<Leftover> find_leftovers(const ProcessList& processes, const CleanScope& scope,
                                     const std::set<pid_t>& own_family);
// Parses "drun-JOB-XXXXXX", the name of an agent's socket directory. Returns the JOB part, the first digits of the
// job id.
std::optional<std::string> job_of_socket_directory(std::string_view name);
std::optional<std::string> user_name(std::string_view passwd, std::uint32_t uid);

// ---- the system

struct LeftDirectoryFound {
  std::string job_id;  // only the first digits for a socket directory
  std::string path;
  bool is_cgroup = false;
  bool populated = false;  // a cgroup that has processes
  Fd lock;                 // the remover's lock
};
// True if the directory may belong to that job.
bool may_be_of(const LeftDirectoryFound& directory, std::string_view job_id);
// Cgroups and socket directories of jobs without a living agent. Cgroups of the scope's users; socket directories of
// our own user only.
std::vector<LeftDirectoryFound> find_directories(const CleanScope& scope);
bool remove_directory(const LeftDirectoryFound& directory);
// True if one of the processes is in that cgroup or below it.
bool holds_one_of(const LeftDirectoryFound& cgroup, const std::set<pid_t>& pids);

}  // namespace drun::agent
