#include "agent/clean.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/cgroup.h"
#include "agent/leftovers.h"
#include "agent/process_list.h"
#include "agent/sweep.h"
#include "base/asio.h"

namespace drun::agent {

namespace {

using control::LeftState;

constexpr auto kKillTime = std::chrono::seconds(5);  // until a process that got KILL counts as a survivor
constexpr useconds_t kPause = 10'000;
constexpr std::size_t kMaxListed = 10'000;

// A process to end. Its start time is kept, because a pid alone may be reused.
struct Target {
  std::uint64_t start = 0;
  control::LeftProcess report;
};
using Targets = std::map<pid_t, Target>;

class Cleaner {
 public:
  Cleaner(const control::Clean& order, pid_t guard) : order_(order), guard_(guard) {
    if (!order.all_users || ::geteuid() != 0) scope_.uid = ::getuid();
    scope_.job_id = order.job_id;
    if (const auto passwd = read_file("/etc/passwd")) passwd_ = *passwd;
  }

  control::Cleaned run() {
    poll();
    if (order_.end) {
      end_politely();
      end_hard();
    }
    control::Cleaned out;
    for (auto& [pid, target] : targets_) out.processes.push_back(std::move(target.report));
    for (auto& process : running_) out.processes.push_back(std::move(process));
    std::sort(out.processes.begin(), out.processes.end(), [](const auto& a, const auto& b) {
      return std::tie(a.job_id, a.rank, a.pid) < std::tie(b.job_id, b.rank, b.pid);
    });
    if (out.processes.size() > kMaxListed) out.processes.resize(kMaxListed);
    directories(out);
    return out;
  }

 private:
  // Adds the processes found now to targets_; true if any of the targets lives.
  bool poll() {
    // Root scans all users: a user's job may run programs as root, and it is running if the user's agent is.
    const ProcessList processes = list_processes(::geteuid() == 0 ? std::nullopt : scope_.uid);
    family_ = own_family(processes, guard_, ::getpid());
    const std::uint64_t now = now_in_ticks();
    running_.clear();
    spared_jobs_.clear();
    for (const auto& found : find_leftovers(processes, scope_, family_)) {
      const Process& p = processes.at(found.pid);
      control::LeftProcess report;
      report.job_id = found.job_id;
      report.rank = found.rank;
      report.pid = found.pid;
      report.uid = p.uid;
      report.user = name_of(p.uid);
      report.age_s = now > p.stat.start ? (now - p.stat.start) / ticks_per_second() : 0;
      report.command = p.command;
      // A running job is ended only if the order names it.
      if (found.running && scope_.job_id.empty()) {
        report.state = LeftState::kRunning;
        running_.push_back(std::move(report));
        spared_jobs_.insert(found.job_id);
        continue;
      }
      if (found.running && !order_.end) report.state = LeftState::kRunning;
      const auto known = targets_.find(found.pid);
      if (known != targets_.end() && known->second.start == p.stat.start) continue;
      targets_[found.pid] = Target{p.stat.start, std::move(report)};
    }
    return any_lives();
  }

  bool is_target(const std::string& job_id) const {
    return std::any_of(targets_.begin(), targets_.end(),
                       [&](const auto& t) { return t.second.report.job_id == job_id; });
  }

  // cgroup.kill would also end the shell of the user who runs `drun clean` in it.
  bool may_kill(const LeftDirectoryFound& directory) const {
    return directory.is_cgroup && directory.populated && is_target(directory.job_id) &&
           !holds_one_of(directory, family_);
  }

  bool any_lives() const {
    return std::any_of(targets_.begin(), targets_.end(), [](const auto& t) { return lives(t.first, t.second.start); });
  }

  void signal_all(int number) {
    for (const auto& [pid, target] : targets_) signal_process(pid, target.start, number);
  }

  void end_politely() {
    const Deadline kill_at = Clock::now() + std::chrono::milliseconds(order_.grace_ms);
    signal_all(SIGTERM);
    signal_all(SIGCONT);
    while (any_lives() && Clock::now() < kill_at) ::usleep(kPause);
  }

  void end_hard() {
    const Deadline give_up = Clock::now() + kKillTime;
    while (poll() && Clock::now() < give_up) {
      for (const auto& directory : find_directories(scope_)) {
        if (may_kill(directory)) kill_cgroup(directory.path);
      }
      signal_all(SIGKILL);
      ::usleep(kPause);
    }
    for (auto& [pid, target] : targets_) {
      const bool survived = lives(pid, target.start);
      target.report.state = survived ? LeftState::kSurvived : LeftState::kEnded;
      if (survived) spared_jobs_.insert(target.report.job_id);  // without its directory it would not be found again
    }
  }

  void directories(control::Cleaned& out) {
    for (const auto& found : find_directories(scope_)) {
      const auto is_its = [&](const std::string& job) { return may_be_of(found, job); };
      if (found.populated || std::any_of(spared_jobs_.begin(), spared_jobs_.end(), is_its)) continue;
      control::LeftDirectory report;
      report.job_id = found.job_id;
      report.path = found.path;
      if (order_.end) report.state = remove_directory(found) ? LeftState::kEnded : LeftState::kSurvived;
      out.directories.push_back(std::move(report));
    }
  }

  std::string name_of(std::uint32_t uid) const {
    if (auto name = user_name(passwd_, uid)) return *name;
    const char* own = std::getenv("USER");
    return uid == ::getuid() && own != nullptr && *own != '\0' ? std::string(own) : std::to_string(uid);
  }

  const control::Clean& order_;
  pid_t guard_;
  CleanScope scope_;
  std::string passwd_;
  std::set<pid_t> family_;
  Targets targets_;
  std::vector<control::LeftProcess> running_;
  std::set<std::string> spared_jobs_;  // whose directories stay
};

}  // namespace

control::Cleaned clean(const control::Clean& order, pid_t guard) { return Cleaner(order, guard).run(); }

}  // namespace drun::agent
