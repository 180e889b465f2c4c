#include "check/verdict.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "check/connect_findings.h"

namespace drun::check {

void set_verdicts(CheckResult& result) {
  // Reports the error of `drun run` if no other finding says why it would not start.
  const bool explained = std::any_of(result.findings.begin(), result.findings.end(),
                                     [](const Finding& finding) { return finding.severity == Severity::kFailure; });
  if (result.network_error && !explained) {
    Finding finding = unreachable_finding(-1, *result.network_error);
    finding.code = "no-common-network";
    if (result.network_error->hint.empty()) finding.command = "drun check --network-interfaces NETWORK ...";
    result.findings.push_back(std::move(finding));
  }
  sort_findings(result.findings);
  std::vector<Severity> worst(result.hosts.size(), Severity::kNote);
  Severity overall = Severity::kNote;
  for (const Finding& finding : result.findings) {
    overall = std::max(overall, finding.severity);
    for (const int host : finding.hosts) {
      auto& of_host = worst[static_cast<std::size_t>(host)];
      of_host = std::max(of_host, finding.severity);
    }
  }
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    if (result.hosts[i].error) worst[i] = overall = Severity::kFailure;
    result.hosts[i].verdict = verdict_of(worst[i]);
  }
  result.verdict = verdict_of(overall);
}

int check_status(const CheckResult& result, bool strict) {
  for (const auto& host : result.hosts) {
    if (host.error) return exit_status(host.error->code);
  }
  if (result.network_error) return exit_status(result.network_error->code);
  if (result.verdict == Verdict::kNotReady) return kExitNotReady;
  if (strict && result.verdict == Verdict::kWarnings) return kExitNotReady;
  return result.not_saved ? kExitUsage : kExitOk;
}

}  // namespace drun::check
