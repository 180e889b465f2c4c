#include "launcher/run/join_tracker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/plan/rank_list.h"

namespace drun::launcher {

Deadline start_deadline(Deadline wanted) {
  constexpr auto kMinStartTime = std::chrono::seconds(5);  // for the agents, however late the order comes
  return std::max(wanted, Clock::now() + kMinStartTime);
}

JoinTracker::JoinTracker(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, StartWatch& watch,
                         Events& events)
    : reporter_(reporter),
      supervisor_(supervisor),
      watch_(watch),
      events_(events),
      all_started_(io.get_executor()),
      first_joined_(io.get_executor()),
      all_joined_(io.get_executor()) {}

void JoinTracker::on_started(const control::Started& message) {
  const int rank = static_cast<int>(message.rank);
  const int host = ranks().at(rank).host;
  if (message.error == 0) {
    server_->note(rank, "pid " + std::to_string(message.pid) + " runs");
    events_.worker_started(rank, ranks().host_name(rank), message.pid);
  }
  if (ranks().n_unanswered(host) > 0) return;
  watch_.done(static_cast<std::size_t>(host));
  if (ranks().n_unanswered() > 0) return;
  watch_.end();
  watch_.stop();
  all_started_.notify();
}

void JoinTracker::on_exited(const control::Exited& message) {
  const int rank = static_cast<int>(message.rank);
  server_->note(rank, "its process has ended");
  events_.worker_exited(rank, ranks().host_name(rank), message);
}

void JoinTracker::on_joined(int rank, int pid) {
  log::debug("rank " + std::to_string(rank) + " (pid " + std::to_string(pid) + ") joined the rendezvous");
  first_joined_.notify();
  if (ranks().n_joined() == ranks().size()) all_joined_.notify();
}

// "rank 1 on host1 (pid 12 runs), ranks 8-15 on host2".
std::string JoinTracker::absent_ranks() const {
  std::vector<std::vector<int>> absent(ranks().hosts().size());
  for (const auto& entry : ranks()) {
    if (!entry.joined) absent[static_cast<std::size_t>(entry.host)].push_back(entry.rank);
  }
  std::vector<std::string> parts;
  for (std::size_t host = 0; host < absent.size(); ++host) {
    if (absent[host].empty()) continue;
    std::string part =
        (absent[host].size() == 1 ? "rank " : "ranks ") + ranks_text(absent[host]) + " on " + ranks().hosts()[host];
    if (absent[host].size() == 1) {
      const auto& entry = ranks().at(absent[host].front());
      const bool runs = entry.pid > 0 && !entry.exited;
      part += runs ? " (pid " + std::to_string(entry.pid) + " runs)" : " (its process has ended)";
    }
    parts.push_back(std::move(part));
  }
  return join(parts, ", ");
}

// An agent names a worker that can't execute its program in time; this is for an agent that does not even do that.
Task<void> JoinTracker::watch_start(Deadline deadline) {
  const auto began = Clock::now();
  const bool all = co_await all_started_.wait_until(deadline);
  if (all || supervisor_.stopping()) co_return;
  std::vector<std::string> late;
  for (std::size_t i = 0; i < ranks().hosts().size(); ++i) {
    if (ranks().n_unanswered(static_cast<int>(i)) > 0) late.push_back(ranks().hosts()[i]);
  }
  const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - began).count();
  reporter_.error(Error(Errc::kTimeout, join(late, ", "),
                        "start: its agent did not start its workers within " + std::to_string(waited) + " s"));
  supervisor_.stop(kExitTimeout, "the workers on " + join(late, ", ") + " were not started in time");
}

Task<void> JoinTracker::watch_joins(std::chrono::milliseconds delay) {
  co_await first_joined_.wait();
  const bool all = co_await all_joined_.wait_until(Clock::now() + delay);
  if (all || over_ || supervisor_.stopping()) co_return;
  reporter_.warning(std::to_string(ranks().n_joined()) + " of " + plural(ranks().size(), "rank") +
                    " joined the job within " +
                    std::to_string(std::chrono::duration_cast<std::chrono::seconds>(delay).count()) +
                    " s and may wait for the others: " + absent_ranks());
}

void JoinTracker::stop() {
  over_ = true;
  all_started_.notify();
  first_joined_.notify();
  all_joined_.notify();
}

}  // namespace drun::launcher
