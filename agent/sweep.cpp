#include "agent/sweep.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <unordered_map>

#include "agent/process_list.h"
#include "base/fd.h"
#include "base/process_stat.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr auto kPollTime = std::chrono::seconds(2);

bool is_stray(pid_t pid, const JobMark& mark) {
  const auto environment = read_file(proc_file(pid, "environ"));
  if (!environment) return false;
  bool of_job = false;
  for (const auto item : split(*environment, '\0')) {
    if (item.starts_with("DRUN_AGENT=") && item.substr(11) != mark.agent_socket) return false;
    if (item.starts_with("DRUN_JOB_ID=") && item.substr(12) == mark.job_id) of_job = true;
  }
  return of_job;
}

void find_strays(const JobMark& mark, int answer) {
  const uid_t me = ::geteuid();
  for_each_pid([&](pid_t pid) {
    struct stat owner {};
    if (::stat(("/proc/" + std::to_string(pid)).c_str(), &owner) != 0) return true;
    if ((me != 0 && owner.st_uid != me) || !is_stray(pid, mark)) return true;
    return ::write(answer, &pid, sizeof pid) == static_cast<ssize_t>(sizeof pid);
  });
}

// The process may have ended since it was found, and its pid been reused: opens a pidfd, which stays that of one
// process, checks by `is_wanted`, then signals. True if it was sent.
template <typename IsWanted>
bool signal_if(pid_t pid, int number, IsWanted is_wanted) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process && errno != ENOSYS && errno != EPERM) return false;
  if (!is_wanted()) return false;
  if (!process) return ::kill(pid, number) == 0;
  return ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) == 0;
}

// Kills the strays and adds them to `killed`, and those that live on to `left`. Returns their number.
std::size_t end_strays(const JobMark& mark, Deadline deadline, std::set<pid_t>& killed,
                       std::vector<ProcessStat>& left) {
  std::size_t n = 0;
  for (const pid_t pid : strays(mark, deadline)) {
    if (!signal_if(pid, SIGKILL, [&] { return is_stray(pid, mark); })) continue;
    ++n;
    killed.insert(pid);
    if (auto stat = stat_of(pid); stat && !stat->over) left.push_back(std::move(*stat));
  }
  return n;
}

std::vector<ProcessStat> descendant_processes() {
  std::unordered_map<pid_t, std::vector<ProcessStat>> children;
  for_each_pid([&](pid_t pid) {
    if (auto stat = stat_of(pid)) children[stat->parent].push_back(std::move(*stat));
    return true;
  });
  std::vector<ProcessStat> out;
  std::vector<pid_t> todo = {::getpid()};
  while (!todo.empty()) {
    const pid_t parent = todo.back();
    todo.pop_back();
    const auto found = children.find(parent);
    if (found == children.end()) continue;
    for (ProcessStat& child : found->second) {
      todo.push_back(child.pid);
      if (!child.over) out.push_back(std::move(child));
    }
  }
  return out;
}

bool are_stuck(const std::vector<ProcessStat>& processes) {
  return !processes.empty() && std::all_of(processes.begin(), processes.end(),
                                           [](const ProcessStat& process) { return process.state == 'D'; });
}

// The reason why SIGKILL did not end it.
std::string reason_of(const ProcessStat& process) {
  if (process.state == 'D') return "in uninterruptible sleep until the kernel lets it go";
  if (::kill(process.pid, 0) != 0 && errno == EPERM) return "a process of another user";
  return "which is still ending";
}

std::vector<std::string> names_of(const std::vector<ProcessStat>& processes) {
  std::vector<std::string> out;
  for (const auto& process : processes) {
    out.push_back("pid " + std::to_string(process.pid) + " (" + process.name + "), " + reason_of(process));
  }
  return out;
}

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::vector<pid_t> descendants() {
  std::vector<pid_t> out;
  for (const auto& process : descendant_processes()) out.push_back(process.pid);
  return out;
}

bool lives(pid_t pid, std::uint64_t start) {
  const auto stat = stat_of(pid);
  return stat && stat->start == start && !stat->over;
}

bool signal_process(pid_t pid, std::uint64_t start, int number) {
  return signal_if(pid, number, [&] { return lives(pid, start); });
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

std::vector<pid_t> strays(const JobMark& mark, Deadline deadline) {
  std::vector<pid_t> out;
  if (mark.job_id.empty()) return out;
  auto answer = make_pipe();
  if (!answer) return out;
  const pid_t helper = ::fork();
  if (helper < 0) return out;
  if (helper == 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::close(fd);  // a stuck helper must not hold the channel open
    find_strays(mark, answer->write.get());
    ::_exit(0);
  }
  answer->write.reset();
  deadline = std::min(deadline, Clock::now() + kPollTime);
  for (;;) {
    const auto left = left_until(deadline).count();
    pollfd p{answer->read.get(), POLLIN, 0};
    const int ready = left > 0 ? ::poll(&p, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    pid_t pid = 0;
    if (ready <= 0 || ::read(answer->read.get(), &pid, sizeof pid) != static_cast<ssize_t>(sizeof pid)) break;
    out.push_back(pid);
  }
  ::kill(helper, SIGKILL);
  while (::waitpid(helper, nullptr, WNOHANG) == 0 && Clock::now() < deadline) ::usleep(500);
  return out;
}

Swept sweep(const SweepLimits& limits, const Reaped& reaped, const JobMark& mark) {
  Swept out;
  std::set<pid_t> killed;
  useconds_t pause = 500;
  Deadline not_stuck_at = Clock::now();  // the last time that a process was seen which SIGKILL can end
  for (;;) {
    std::vector<ProcessStat> left;
    if (has_children()) left = descendant_processes();
    for (const ProcessStat& process : left) {
      if (signal_process(process.pid, process.start, SIGKILL)) killed.insert(process.pid);
    }
    reap_ended(reaped);
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, WNOHANG);
    if (child > 0) {
      reaped(child, status);
      continue;
    }
    const bool has_none = child < 0 && errno == ECHILD;
    if (has_none) {
      left.clear();
      if (end_strays(mark, limits.deadline, killed, left) == 0) break;
    }
    const auto now = Clock::now();
    if (!are_stuck(left)) not_stuck_at = now;
    if (now >= limits.deadline || now - not_stuck_at >= limits.stuck) {
      out.stuck = names_of(left);
      break;
    }
    ::usleep(pause);  // killed processes need a moment to die; there is nothing to wait on for grandchildren
    if (pause < 8000) pause *= 2;
  }
  out.n_killed = killed.size();
  return out;
}

}  // namespace drun::agent
