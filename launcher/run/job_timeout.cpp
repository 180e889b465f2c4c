#include "launcher/run/job_timeout.h"

#include <string>
#include <utility>

#include "base/error_id.h"
#include "base/exit_status.h"
#include "base/log.h"

namespace drun::launcher {

Task<void> JobTimeout::watch(std::vector<AgentChannel*> hosts, const Placement& placement,
                             std::chrono::milliseconds limit, std::function<std::vector<int>()> joined,
                             std::function<void()> ended) {
  const bool stopped = co_await stopped_.wait_until(Clock::now() + limit);
  if (stopped || supervisor_.stopping()) co_return;
  has_passed_ = true;
  log::info("--timeout: asking every rank what it does");
  std::vector<int> members = joined();
  const auto ranks = co_await snapshots_.ask(hosts, placement, std::move(members), stack_time_);
  const auto ms = limit.count();
  const std::string seconds =
      std::to_string(ms / 1000) + (ms % 1000 >= 100 ? "." + std::to_string(ms % 1000 / 100) : "");
  Error error(Errc::kTimeout, "--timeout", "the job did not end within " + seconds + " s");
  error.id = error_id::kJobTimeout;
  error = std::move(error).with_context(describe_ranks(ranks));
  if (const auto text = describe_stacks(ranks); !text.empty()) error = std::move(error).with_context(text);
  reporter_.error(error);
  reported_.notify();
  supervisor_.stop(kExitTimeout, "the job's --timeout passed");
  ended();
}

Task<void> JobTimeout::finish_report() {
  snapshots_.cancel();
  co_await reported_.wait();
}

}  // namespace drun::launcher
