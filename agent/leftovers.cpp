#include "agent/leftovers.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "agent/cgroup.h"
#include "agent/life_lock.h"
#include "agent/worker_socket.h"
#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxCgroups = 50000;
constexpr std::size_t kSocketJobDigits = 12;

// No process is ended because of its name; a name only spares the descendants of an agent.
bool is_agent(const Process& p) { return p.stat.name == "drun-agent" || p.stat.name == "drun-guard"; }

// Calls `see` for the ancestors, the nearest first, until it returns true.
template <typename See>
bool any_ancestor(const ProcessList& processes, pid_t pid, See see) {
  std::size_t n_steps = 0;
  auto at = processes.find(pid);
  while (at != processes.end() && ++n_steps <= processes.size()) {
    at = processes.find(at->second.stat.parent);
    if (at == processes.end()) return false;
    if (see(at->first, at->second)) return true;
  }
  return false;
}

// The mark of the process, or of its nearest ancestor that has one: a child may have cleared its environment.
JobOfProcess mark_with_ancestors(const ProcessList& processes, pid_t pid) {
  JobOfProcess mark = processes.at(pid).mark;
  if (!mark.job_id.empty()) return mark;
  any_ancestor(processes, pid, [&](pid_t, const Process& ancestor) {
    mark = ancestor.mark;
    return !mark.job_id.empty();
  });
  return mark;
}

bool in_scope(const LeftDirectoryFound& directory, const CleanScope& scope) {
  return scope.job_id.empty() || may_be_of(directory, scope.job_id);
}

// True if the agent lives and so holds its lock. Otherwise takes the remover's lock.
bool agent_lives(LeftDirectoryFound& directory) {
  auto lock = lock_as_remover(directory.path);
  if (!lock) return true;
  directory.lock = std::move(*lock);
  return false;
}

bool is_populated(const std::string& cgroup) {
  const auto events = read_file(cgroup + "/cgroup.events");
  return !events || events->find("populated 0") == std::string::npos;
}

void find_cgroups(const std::string& directory, int depth, std::size_t& n_seen, const CleanScope& scope,
                  std::vector<LeftDirectoryFound>& out) {
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == ".." || ++n_seen > kMaxCgroups) continue;
    const std::string path = directory + "/" + name;
    if (const auto parsed = parse_cgroup_name(name)) {
      LeftDirectoryFound found{parsed->job_id, path, true, false, Fd()};
      struct stat s {};
      if (in_scope(found, scope) && ::stat(path.c_str(), &s) == 0 && (!scope.uid || *scope.uid == s.st_uid) &&
          !agent_lives(found)) {
        found.populated = is_populated(path);
        out.push_back(std::move(found));
      }
    }
    if (depth < kMaxDepth) find_cgroups(path, depth + 1, n_seen, scope, out);
  }
  ::closedir(entries);
}

// True if nothing listens on the socket: the agent died. A living agent accepts a connection or lets it wait.
bool nobody_answers(const std::string& socket_path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof where.sun_path) return false;
  std::memcpy(where.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 && errno == ECONNREFUSED;
}

void find_sockets(const std::string& place, const CleanScope& scope, std::vector<LeftDirectoryFound>& out) {
  DIR* entries = ::opendir(place.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    const auto job = job_of_socket_directory(entry->d_name);
    if (!job) continue;
    LeftDirectoryFound found{*job, place + "/" + entry->d_name, false, false, Fd()};
    struct stat s {};
    if (!in_scope(found, scope) || ::lstat(found.path.c_str(), &s) != 0) continue;
    if (!S_ISDIR(s.st_mode) || s.st_uid != ::getuid()) continue;
    // The socket is checked too, because not every file system has locks.
    if (nobody_answers(WorkerSocket::path_in(found.path)) && !agent_lives(found)) out.push_back(std::move(found));
  }
  ::closedir(entries);
}

}  // namespace

std::set<pid_t> own_family(const ProcessList& processes, pid_t guard, pid_t self) {
  std::set<pid_t> out = {self};
  any_ancestor(processes, self, [&](pid_t pid, const Process&) {
    out.insert(pid);
    return false;
  });
  pid_t top = guard;
  if (const auto g = processes.find(guard); g != processes.end()) {
    const auto parent = processes.find(g->second.stat.parent);
    if (parent != processes.end() && parent->second.stat.name == "drun") top = parent->first;
  }
  for (const auto& [pid, p] : processes) {
    const bool below = any_ancestor(processes, pid, [&](pid_t ancestor, const Process&) { return ancestor == top; });
    if (below || pid == top) out.insert(pid);
  }
  return out;
}

std::vector<Leftover> find_leftovers(const ProcessList& processes, const CleanScope& scope,
                                     const std::set<pid_t>& own_family) {
  std::vector<Leftover> out;
  std::set<std::string> running_jobs;
  for (const auto& [pid, p] : processes) {
    if (p.stat.over || own_family.count(pid) > 0) continue;
    const JobOfProcess mark = mark_with_ancestors(processes, pid);
    if (mark.job_id.empty()) continue;
    // An agent's mark names the job in which its drun was called, not the job that it runs.
    if (!is_agent(p) && any_ancestor(processes, pid, [](pid_t, const Process& a) { return is_agent(a); })) {
      running_jobs.insert(mark.job_id);
    }
    if ((!scope.job_id.empty() && scope.job_id != mark.job_id) || (scope.uid && *scope.uid != p.uid)) continue;
    Leftover found;
    found.pid = pid;
    found.job_id = mark.job_id;
    found.rank = mark.rank;
    out.push_back(std::move(found));
  }
  for (auto& found : out) found.running = running_jobs.count(found.job_id) > 0;
  std::sort(out.begin(), out.end(), [](const Leftover& a, const Leftover& b) {
    return std::tie(a.job_id, a.rank, a.pid) < std::tie(b.job_id, b.rank, b.pid);
  });
  return out;
}

std::optional<std::string> job_of_socket_directory(std::string_view name) {
  const auto parts = split(name, '-');
  if (parts.size() != 3 || parts[0] != "drun" || parts[1].size() != kSocketJobDigits || parts[2].size() != 6) {
    return std::nullopt;
  }
  const bool hex_digits = std::all_of(parts[1].begin(), parts[1].end(),
                                      [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex_digits ? std::optional<std::string>(parts[1]) : std::nullopt;
}

bool may_be_of(const LeftDirectoryFound& directory, std::string_view job_id) {
  return directory.is_cgroup ? directory.job_id == job_id : starts_with(job_id, directory.job_id);
}

std::optional<std::string> user_name(std::string_view passwd, std::uint32_t uid) {
  for (const auto line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() >= 3 && parse_number(fields[2]) == uid && !fields[0].empty()) return std::string(fields[0]);
  }
  return std::nullopt;
}

std::vector<LeftDirectoryFound> find_directories(const CleanScope& scope) {
  std::vector<LeftDirectoryFound> out;
  std::size_t n_seen = 0;
  const CgroupFiles files = read_cgroup_files();
  for (const auto& mount : usable_cgroup2_mounts(files.mountinfo)) find_cgroups(mount.point, 0, n_seen, scope, out);
  std::set<std::string> places = {"/tmp", "/var/tmp", "/dev/shm", "/run/user/" + std::to_string(::getuid())};
  if (const char* run = std::getenv("XDG_RUNTIME_DIR"); run != nullptr && *run == '/') places.insert(run);
  for (const auto& place : places) find_sockets(place, scope, out);
  return out;
}

bool remove_directory(const LeftDirectoryFound& directory) {
  if (directory.is_cgroup) return remove_cgroup(directory.path, Clock::now() + std::chrono::milliseconds(500));
  return remove_socket_directory(directory.path);
}

bool holds_one_of(const LeftDirectoryFound& cgroup, const std::set<pid_t>& pids) {
  // No other cgroup has its name, and our PID namespace may see the hierarchy from another root.
  const std::string step = cgroup.path.substr(cgroup.path.rfind('/')) + "/";
  return std::any_of(pids.begin(), pids.end(), [&](pid_t pid) {
    const auto text = read_file(proc_file(pid, "cgroup"));
    const auto path = text ? cgroup2_path(*text) : std::nullopt;
    return path && (*path + "/").find(step) != std::string::npos;
  });
}

}  // namespace drun::agent
