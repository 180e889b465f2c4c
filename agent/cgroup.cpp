#include "agent/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>

#include "agent/life_lock.h"
#include "agent/sweep.h"
#include "base/process_stat.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxPath = 2048;  // an announcement must fit into one atomic write to a pipe

// mountinfo writes space, tab, newline and backslash as \040 and the like.
std::string unescape(std::string_view field) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && octal(field[i + 1]) && octal(field[i + 2]) && octal(field[i + 3])) {
      out += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      out += field[i];
    }
  }
  return out;
}

std::vector<std::string> child_directories(const std::string& directory) {
  std::vector<std::string> out;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return out;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") out.push_back(directory + "/" + name);
  }
  ::closedir(entries);
  return out;
}

std::set<pid_t> members_of(const std::string& directory) {
  std::set<pid_t> out;
  const auto members = read_file(directory + "/cgroup.procs");
  if (!members) return out;
  for (const auto line : split(*members, '\n')) {
    const auto pid = parse_number(line);
    if (pid && *pid > 0) out.insert(static_cast<pid_t>(*pid));
  }
  return out;
}

// True if a process was killed. A pid is killed only if it is a member's both before and after its start time is read:
// it could have become that of another process.
bool kill_members(const std::string& directory, int depth) {
  bool any = false;
  std::map<pid_t, std::uint64_t> starts;
  for (const pid_t pid : members_of(directory)) {
    if (const auto stat = stat_of(pid)) starts[pid] = stat->start;
  }
  for (const pid_t pid : members_of(directory)) {
    const auto start = starts.find(pid);
    if (start != starts.end() && signal_process(pid, start->second, SIGKILL)) any = true;
  }
  if (depth >= kMaxDepth) return any;
  for (const auto& child : child_directories(directory)) any = kill_members(child, depth + 1) || any;
  return any;
}

void remove_tree(const std::string& directory, int depth) {
  if (::rmdir(directory.c_str()) == 0 || depth >= kMaxDepth) return;
  for (const auto& child : child_directories(directory)) remove_tree(child, depth + 1);
  ::rmdir(directory.c_str());
}

// Lists the mounts of one type; if `option` is not empty, only those that have it.
std::vector<CgroupMount> mounts_of(std::string_view mountinfo, std::string_view type, std::string_view option) {
  // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS
  std::vector<CgroupMount> out;
  for (const auto line : split(mountinfo, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 2 || *(dash + 1) != type) continue;
    const auto options = fields.end() - dash > 3 ? split(*(dash + 3), ',') : std::vector<std::string_view>();
    if (!option.empty() && std::find(options.begin(), options.end(), option) == options.end()) continue;
    out.push_back({unescape(fields[3]), unescape(fields[4])});
  }
  return out;
}

Result<std::string> own_directory(const CgroupFiles& files) {
  const auto path = cgroup2_path(files.own);
  if (!path) return fail(Errc::kNotFound, "no cgroup of version 2");
  for (const auto& mount : usable_cgroup2_mounts(files.mountinfo)) {
    if (const auto directory = cgroup_directory(mount, *path)) return *directory;
  }
  return fail(Errc::kNotFound, "cgroup " + *path + " is not mounted");
}

}  // namespace

std::vector<CgroupMount> cgroup2_mounts(std::string_view mountinfo) { return mounts_of(mountinfo, "cgroup2", ""); }

std::vector<CgroupMount> cgroup1_mounts(std::string_view mountinfo, std::string_view controller) {
  return mounts_of(mountinfo, "cgroup", controller);
}

std::optional<std::string> cgroup2_path(std::string_view proc_cgroup) {
  for (const auto line : split(proc_cgroup, '\n')) {
    if (starts_with(line, "0::/")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

std::optional<std::string> cgroup_directory(const CgroupMount& mount, const std::string& path) {
  // "/.." appears if the reader's cgroup namespace begins elsewhere.
  if (path.find("/../") != std::string::npos || mount.root.find("..") != std::string::npos) return std::nullopt;
  if (path.size() >= 3 && path.substr(path.size() - 3) == "/..") return std::nullopt;
  std::string below = path == "/" ? "" : path;
  if (mount.root != "/") {
    if (!starts_with(below, mount.root)) return std::nullopt;
    below = below.substr(mount.root.size());
    if (!below.empty() && below[0] != '/') return std::nullopt;
  }
  return mount.point == "/" ? below : mount.point + below;
}

std::string cgroup_name(const CgroupName& name, std::uint32_t random) {
  char suffix[16];
  std::snprintf(suffix, sizeof suffix, "%08x", random);
  return "drun-" + name.job_id + "-" + std::to_string(name.agent) + "-" + suffix;
}

std::optional<CgroupName> parse_cgroup_name(std::string_view name) {
  const auto parts = split(name, '-');
  if (parts.size() != 4 || parts[0] != "drun" || parts[1].empty() || parts[3].size() != 8) return std::nullopt;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const auto agent = parse_number(parts[2]);
  if (!agent || !std::all_of(parts[1].begin(), parts[1].end(), is_hex) ||
      !std::all_of(parts[3].begin(), parts[3].end(), is_hex)) {
    return std::nullopt;
  }
  return CgroupName{std::string(parts[1]), static_cast<pid_t>(*agent)};
}

std::string job_of_cgroup(std::string_view path) {
  std::string job;
  for (const auto part : split(path, '/')) {
    if (auto name = parse_cgroup_name(part)) job = std::move(name->job_id);
  }
  return job;
}

CgroupFiles read_cgroup_files(const std::string& root) {
  CgroupFiles files;
  files.own = read_file(root + "/proc/self/cgroup").value_or("");
  files.mountinfo = read_file(root + "/proc/self/mountinfo").value_or("");
  return files;
}

std::vector<CgroupMount> usable_cgroup2_mounts(std::string_view mountinfo) {
  std::vector<CgroupMount> out;
  for (auto& mount : cgroup2_mounts(mountinfo)) {
    struct statfs s {};
    if (::statfs(mount.point.c_str(), &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC) out.push_back(std::move(mount));
  }
  return out;
}

void kill_cgroup(const std::string& directory) {
  {
    const Fd kill_file(::open((directory + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
    if (kill_file && ::write(kill_file.get(), "1", 1) == 1) return;
  }
  // Repeat until a pass finds no process: members may fork meanwhile.
  for (int pass = 0; pass < 100 && kill_members(directory, 0); ++pass) ::usleep(1000);
}

bool remove_cgroup(const std::string& directory, Deadline deadline) {
  useconds_t pause = 500;
  for (;;) {
    remove_tree(directory, 0);
    if (::access(directory.c_str(), F_OK) != 0) return true;
    if (Clock::now() >= deadline) return false;
    ::usleep(pause);  // killed processes need a moment to be gone
    if (pause < 8000) pause *= 2;
  }
}

Result<JobCgroup> JobCgroup::create(const CgroupFiles& files, const std::string& job_id,
                                    const std::function<bool(const std::string&)>& announce) {
  auto parent = own_directory(files);
  if (!parent) return fail(std::move(parent.error()));
  if (::access(parent->c_str(), W_OK) != 0) return fail(errno_error(errno, "make a cgroup in " + *parent));
  JobCgroup out;
  const CgroupName name{job_id, ::getpid()};
  for (int i = 0; i < kMakerTries && !out.lock_; ++i) {
    std::uint32_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) return fail(errno_error(errno, "getrandom"));
    out.directory_ = *parent + "/" + cgroup_name(name, random);
    if (!parse_cgroup_name(cgroup_name(name, random)) || out.directory_.size() > kMaxPath) {
      return fail(Errc::kInternal, "no name for a cgroup of job " + job_id);
    }
    if (!announce(out.directory_)) return fail(Errc::kIo, "the guard can't be notified of " + out.directory_);
    if (::mkdir(out.directory_.c_str(), 0755) != 0) return fail(errno_error(errno, "make " + out.directory_));
    if (auto lock = lock_as_maker(out.directory_)) {
      out.lock_ = std::move(*lock);
    } else {
      ::rmdir(out.directory_.c_str());
    }
  }
  if (!out.lock_) return fail(Errc::kIo, "no cgroup of job " + job_id + " can be locked");
  out.procs_.reset(::open((out.directory_ + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!out.procs_) {
    const int err = errno;
    ::rmdir(out.directory_.c_str());
    return fail(errno_error(err, "enter " + out.directory_));
  }
  return out;
}

}  // namespace drun::agent
