// A cgroup (version 2) for the workers of one job on one host, where the agent may make one below its own: root, and
// users with a delegated one. Its `cgroup.kill` ends a fork bomb faster than a sweep, and what is left after the worst
// is found by it. Nothing relies on it: without a cgroup the sweep alone keeps the promise.
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

struct CgroupMount {
  std::string root;   // what of the hierarchy is mounted: "/" or a part
  std::string point;  // where
};
// From /proc/self/mountinfo; also one that is mounted beside version 1.
std::vector<CgroupMount> cgroup2_mounts(std::string_view mountinfo);
// The same of version 1: those that have this controller.
std::vector<CgroupMount> cgroup1_mounts(std::string_view mountinfo, std::string_view controller);
// From /proc/PID/cgroup: the path within the hierarchy of version 2.
std::optional<std::string> cgroup2_path(std::string_view proc_cgroup);
// Where that path lies in the file system; nothing if the mount does not show it.
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

// The mounts that can be read: one that another mount covers is listed in mountinfo too.
std::vector<CgroupMount> usable_cgroup2_mounts();

// Everything in the cgroup and below it: by cgroup.kill, or on kernels before 5.14 pid by pid.
void kill_cgroup(const std::string& directory);
// The cgroup and those below it, once nobody is in them. True if it is gone. Blocks until then or the deadline.
bool remove_cgroup(const std::string& directory, Deadline deadline);

class JobCgroup {
 public:
  // `announce` hears each directory before it is made, so that somebody can remove the last whatever happens to us; if
  // it returns false nothing is made. Errors are not for users: most may not make one.
  static Result<JobCgroup> create(const std::string& job_id, const std::function<bool(const std::string&)>& announce);

  const std::string& directory() const { return directory_; }
  int procs_fd() const { return procs_.get(); }  // cgroup.procs, close-on-exec: a child writes "0" to enter

 private:
  std::string directory_;
  Fd lock_;  // life_lock.h: for `drun clean`
  Fd procs_;
};

}  // namespace drun::agent
