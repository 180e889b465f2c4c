#include "launcher/agent/sweep.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

struct Process {
  pid_t parent = 0;
  bool zombie = false;
};

// "PID (comm) S PPID ...": comm may hold anything, so the fields are counted from the last parenthesis.
std::unordered_map<pid_t, Process> all_processes() {
  std::unordered_map<pid_t, Process> out;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = ::readdir(proc)) {
    const auto pid = parse_number(entry->d_name);
    if (!pid) continue;
    const auto stat = read_file(std::string("/proc/") + entry->d_name + "/stat", 4096);
    if (!stat) continue;
    const auto end = stat->rfind(") ");
    if (end == std::string::npos || end + 4 >= stat->size()) continue;
    Process p;
    p.zombie = (*stat)[end + 2] == 'Z' || (*stat)[end + 2] == 'X';
    const auto rest = std::string_view(*stat).substr(end + 4);
    p.parent = static_cast<pid_t>(parse_number(rest.substr(0, rest.find(' '))).value_or(0));
    out.emplace(static_cast<pid_t>(*pid), p);
  }
  ::closedir(proc);
  return out;
}

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants() {
  const auto processes = all_processes();
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for (const auto& [pid, p] : processes) children[p.parent].push_back(pid);
  std::vector<pid_t> out;
  std::vector<pid_t> todo = {::getpid()};
  while (!todo.empty()) {
    const pid_t parent = todo.back();
    todo.pop_back();
    const auto found = children.find(parent);
    if (found == children.end()) continue;
    for (const pid_t child : found->second) {
      todo.push_back(child);
      if (!processes.at(child).zombie) out.push_back(child);
    }
  }
  return out;
}

void reap_ended(const Reaped& reaped) {
  int status = 0;
  for (;;) {
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    reaped(pid, status);
  }
}

std::size_t sweep(Deadline deadline, const Reaped& reaped) {
  std::set<pid_t> killed;
  useconds_t pause = 500;
  for (;;) {
    for (const pid_t pid : descendants()) {
      if (::kill(pid, SIGKILL) == 0) killed.insert(pid);
    }
    reap_ended(reaped);
    int status = 0;
    const pid_t left = ::waitpid(-1, &status, WNOHANG);
    if (left > 0) {
      reaped(left, status);
      continue;
    }
    if (left < 0 && errno == ECHILD) return killed.size();
    if (Clock::now() >= deadline) return killed.size();
    ::usleep(pause);  // killed processes need a moment to die; there is nothing to wait on for grandchildren
    if (pause < 8000) pause *= 2;
  }
}

}  // namespace drun::agent
