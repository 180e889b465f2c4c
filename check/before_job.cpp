#include "check/before_job.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/error_id.h"
#include "base/exit_status.h"
#include "check/check.h"
#include "check/check_times.h"
#include "check/finding.h"
#include "check/verdict.h"
#include "launcher/plan/worker_env.h"

namespace drun::check {
namespace {

void report(const Finding& finding, launcher::Reporter& reporter) {
  if (finding.severity == Severity::kWarning) reporter.warning(finding.subject + ": " + finding.text);
  if (finding.severity != Severity::kFailure) return;
  Error error(Errc::kUnreachable, finding.subject, finding.text);
  error.id = finding.code;
  for (const auto& line : finding.details) error = std::move(error).with_context(line);
  if (!finding.command.empty()) error = std::move(error).with_hint(finding.command);
  reporter.error(error);
}

Task<int> examine(asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head, CheckOptions options,
                  launcher::Reporter& reporter, std::optional<launcher::NetworkProbe>* network) {
  const Deadline deadline = Clock::now() + check_time(options.depth);
  const CheckResult result = co_await check_links(io, std::move(hosts), head, std::move(options), deadline, network);
  for (const auto& finding : result.findings) report(finding, reporter);
  co_return check_status(result, false);
}

}  // namespace

launcher::ExamineHosts examine_before(const launcher::JobOptions& job, CheckDepth depth) {
  CheckOptions options;
  options.depth = depth;
  options.purpose = Purpose::kUnknown;
  options.interfaces = job.interfaces;
  options.command = job.command;
  options.working_directory = job.working_directory;
  options.cache_directory = job.cache_directory;
  options.environment = launcher::base_environment(job.own_env, job.env, true);
  return [options](asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head,
                   launcher::Reporter& reporter, std::optional<launcher::NetworkProbe>* network) {
    return examine(io, std::move(hosts), head, options, reporter, network);
  };
}

}  // namespace drun::check
