#include "launcher/run/attendance.h"

#include <algorithm>
#include <utility>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/plan/rank_list.h"

namespace drun::launcher {

namespace {
constexpr auto kSpawnTime = std::chrono::seconds(5);  // for the agents to fork, however late the order comes
}

Attendance::Attendance(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, StartWatch& watch,
                       Events& events)
    : reporter_(reporter),
      supervisor_(supervisor),
      watch_(watch),
      events_(events),
      all_started_(io.get_executor()),
      first_joined_(io.get_executor()),
      all_joined_(io.get_executor()) {}

void Attendance::expect(std::vector<HostLink*> hosts, Placement placement, rendezvous::Server* server) {
  hosts_ = std::move(hosts);
  placement_ = std::move(placement);
  server_ = server;
  n_unstarted_ = placement_.local_sizes;
}

void Attendance::on_started(const HostLink& host, const control::Started& message) {
  const int rank = static_cast<int>(message.rank);
  if (message.error == 0) {
    pids_[rank] = message.pid;
    server_->note(rank, "pid " + std::to_string(message.pid) + " runs");
    events_.worker_started(rank, host.name(), message.pid);
  }
  const auto at = static_cast<std::size_t>(std::find(hosts_.begin(), hosts_.end(), &host) - hosts_.begin());
  if (at >= n_unstarted_.size() || --n_unstarted_[at] > 0) return;
  watch_.done(at);
  if (std::any_of(n_unstarted_.begin(), n_unstarted_.end(), [](int n) { return n > 0; })) return;
  watch_.end();
  watch_.stop();
  all_started_.notify();
}

void Attendance::on_exited(const HostLink& host, const control::Exited& message) {
  const int rank = static_cast<int>(message.rank);
  pids_.erase(rank);
  server_->note(rank, "its process has ended");
  events_.worker_exited(rank, host.name(), message);
}

void Attendance::on_joined(int rank, int pid) {
  log::debug("rank " + std::to_string(rank) + " (pid " + std::to_string(pid) + ") joined the rendezvous");
  first_joined_.notify();
  joined_.insert(rank);
  if (joined_.size() == placement_.ranks.size()) all_joined_.notify();
}

// "rank 1 on host1 (pid 12 runs), ranks 8-15 on host2".
std::string Attendance::absent_ranks() const {
  std::vector<std::string> parts;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    std::vector<int> ranks;
    for (const auto& place : placement_.ranks) {
      const bool here = static_cast<std::size_t>(place.host) == host;
      if (here && joined_.count(place.rank) == 0) ranks.push_back(place.rank);
    }
    if (ranks.empty()) continue;
    std::string part = (ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(ranks) + " on " + hosts_[host]->name();
    if (ranks.size() == 1) {
      const auto pid = pids_.find(ranks[0]);
      part += pid == pids_.end() ? " (its process has ended)" : " (pid " + std::to_string(pid->second) + " runs)";
    }
    parts.push_back(std::move(part));
  }
  return join(parts, ", ");
}

// An agent that has said that it is ready forks within milliseconds, or hangs.
Task<void> Attendance::watch_start(Deadline deadline) {
  const auto began = Clock::now();
  const bool all = co_await all_started_.wait_until(std::max(deadline, began + kSpawnTime));
  if (all || supervisor_.stopping()) co_return;
  std::vector<std::string> late;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (n_unstarted_[i] > 0) late.push_back(hosts_[i]->name());
  }
  const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - began).count();
  reporter_.error(Error(Errc::kTimeout, join(late, ", "),
                        "start: its agent did not start its workers within " + std::to_string(waited) + " s"));
  supervisor_.stop(kExitTimeout, "the workers on " + join(late, ", ") + " were not started in time");
}

Task<void> Attendance::watch_joins(std::chrono::milliseconds patience) {
  co_await first_joined_.wait();
  const bool all = co_await all_joined_.wait_until(Clock::now() + patience);
  if (all || over_ || supervisor_.stopping()) co_return;
  reporter_.warning(std::to_string(joined_.size()) + " of " + plural(placement_.ranks.size(), "rank") +
                    " joined the job within " +
                    std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count()) +
                    " s and may wait for the others: " + absent_ranks());
}

void Attendance::stop() {
  over_ = true;
  all_started_.notify();
  first_joined_.notify();
  all_joined_.notify();
}

}  // namespace drun::launcher
