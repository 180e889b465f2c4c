#include "agent/processes.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "agent/sweep.h"

namespace drun::agent {

namespace {
constexpr std::chrono::milliseconds kSeenFor{10};  // half of the worker group's poll interval
}

Result<WorkerProcess> OwnProcesses::start(const WorkerStart& start) { return start_worker(start); }

void OwnProcesses::signal_group(pid_t group, int number) { ::kill(-group, number); }

void OwnProcesses::signal_child(pid_t pid, int number) { ::kill(pid, number); }

bool OwnProcesses::has_members(pid_t group) {
  if (::kill(-group, 0) != 0) return false;
  const auto is_seen = [&] {
    return std::any_of(seen_.begin(), seen_.end(), [group](pid_t pid) { return ::getpgid(pid) == group; });
  };
  if (Clock::now() - seen_at_ <= kSeenFor && is_seen()) return true;
  seen_ = agent::descendants();  // a member may be younger than those that were seen
  seen_at_ = Clock::now();
  return is_seen();
}

bool OwnProcesses::has_children() { return agent::has_children(); }

std::vector<pid_t> OwnProcesses::descendants() { return agent::descendants(); }

}  // namespace drun::agent
