// A cgroup (version 2) for the workers of one job on one host, if the agent may create one below its own: root, and
// users with a delegated cgroup. Its `cgroup.kill` ends a fork bomb faster than a sweep, and it identifies leftovers
// if both agent and guard were killed. It is optional: without a cgroup, the sweep alone ends every process of the
// job.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "base/fd.h"

namespace drun::agent {

// ---- texts: pure

// The kernel's words on where our cgroup is: /proc/self/cgroup and /proc/self/mountinfo; "" = it could not be read.
struct CgroupFiles {
  std::string own;
  std::string mountinfo;
};
struct CgroupMount {
  std::string root;   // the mounted part of the hierarchy: "/" or a path below
  std::string point;  // mount point
};
// Parses mountinfo. Includes a version 2 hierarchy that is mounted beside version 1.
std::vector<CgroupMount> cgroup2_mounts(std::string_view mountinfo);
// The version 1 mounts that have this controller.
std::vector<CgroupMount> cgroup1_mounts(std::string_view mountinfo, std::string_view controller);
// Parses /proc/PID/cgroup: the path within the version 2 hierarchy.
std::optional<std::string> cgroup2_path(std::string_view proc_cgroup);
// The directory of that path in the file system; nothing if the mount does not include it.
std::optional<std::string> cgroup_directory(const CgroupMount& mount, const std::string& path);

// "drun-JOB-PID-RANDOM". The random part keeps agents of several PID namespaces apart.
struct CgroupName {
  std::string job_id;
  pid_t agent = 0;
};
std::string cgroup_name(const CgroupName& name, std::uint32_t random);
std::optional<CgroupName> parse_cgroup_name(std::string_view name);
// The innermost job that a path within the hierarchy belongs to; "" = none.
std::string job_of_cgroup(std::string_view path);

// ---- the system

// `root` is prepended to both paths; "" except in tests. The kernel needs 0.1 ms to write mountinfo, more if there are
// many mounts.
CgroupFiles read_cgroup_files(const std::string& root = "");
// The mounts that can be read. mountinfo also lists mounts that another mount hides.
std::vector<CgroupMount> usable_cgroup2_mounts(std::string_view mountinfo);

// Kills every process in the cgroup and below it: with cgroup.kill, or pid by pid on kernels before 5.14.
void kill_cgroup(const std::string& directory);
// Removes the cgroup and those below it once they have no members. Blocks until then or until the deadline. True if
// the cgroup is gone.
bool remove_cgroup(const std::string& directory, Deadline deadline);

class JobCgroup {
 public:
  // Calls `announce` with each directory before it is created, so that the guard can remove the latest one if the
  // agent dies; if it returns false, nothing is created. Errors are not for users: most users may not create a
  // cgroup.
  static Result<JobCgroup> create(const CgroupFiles& files, const std::string& job_id,
                                  const std::function<bool(const std::string&)>& announce);

  const std::string& directory() const { return directory_; }
  int procs_fd() const { return procs_.get(); }  // cgroup.procs, close-on-exec: a child writes "0" to enter

 private:
  std::string directory_;
  Fd lock_;  // life_lock.h: for `drun clean`
  Fd procs_;
};

}  // namespace drun::agent
