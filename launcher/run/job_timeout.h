// --timeout: when the time of a job is over, reports what every rank is doing, and ends the job.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/plan/placement.h"
#include "launcher/report/reporter.h"
#include "launcher/run/rank_snapshots.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

// Owned by the job, on its thread; what it is given outlives it.
class JobTimeout {
 public:
  // `stack_time`: how long reading the stacks of the ranks may take; 0: they are not read.
  JobTimeout(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, std::chrono::milliseconds stack_time)
      : reporter_(reporter),
        supervisor_(supervisor),
        stack_time_(stack_time),
        snapshots_(io),
        stopped_(io.get_executor()),
        reported_(io.get_executor()) {}

  // `joined`: the ranks that are members of the rendezvous. `ended`: called once the end has been ordered.
  Task<void> watch(std::vector<AgentChannel*> hosts, const Placement& placement, std::chrono::milliseconds limit,
                   std::function<std::vector<int>()> joined, std::function<void()> ended);
  void take(control::Described message) { snapshots_.take(std::move(message)); }
  bool has_passed() const { return has_passed_; }
  // After it has passed: ends the wait for snapshots, and returns once they are reported.
  Task<void> finish_report();
  void stop() { stopped_.notify(); }  // idempotent

 private:
  Reporter& reporter_;
  Supervisor& supervisor_;
  std::chrono::milliseconds stack_time_;
  RankSnapshots snapshots_;
  Event stopped_, reported_;
  bool has_passed_ = false;
};

}  // namespace drun::launcher
