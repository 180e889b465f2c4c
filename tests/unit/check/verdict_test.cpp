#include "check/verdict.h"

#include <gtest/gtest.h>

#include "base/exit_status.h"

namespace drun::check {
namespace {

Finding finding(Severity severity, std::string code, std::vector<int> hosts) {
  Finding out;
  out.severity = severity;
  out.code = std::move(code);
  out.hosts = std::move(hosts);
  return out;
}

TEST(Verdict, OfAHostIsThatOfItsWorstFinding) {
  CheckResult result;
  result.hosts.resize(3);
  result.findings = {finding(Severity::kNote, "a", {0, 1, 2}), finding(Severity::kWarning, "b", {1})};
  set_verdicts(result);
  EXPECT_EQ(result.hosts[0].verdict, Verdict::kReady);
  EXPECT_EQ(result.hosts[1].verdict, Verdict::kWarnings);
  EXPECT_EQ(result.verdict, Verdict::kWarnings);
  EXPECT_EQ(result.findings[0].code, "b");  // the worst first
}

TEST(Verdict, OfTheClusterCountsFindingsOnNoHost) {
  CheckResult result;
  result.hosts.resize(1);
  result.findings = {finding(Severity::kWarning, "a", {})};
  set_verdicts(result);
  EXPECT_EQ(result.hosts[0].verdict, Verdict::kReady);
  EXPECT_EQ(result.verdict, Verdict::kWarnings);
}

TEST(Verdict, AHostWithAnErrorIsNotReady) {
  CheckResult result;
  result.hosts.resize(2);
  result.hosts[1].error = Error(Errc::kUnreachable, "b", "refused");
  set_verdicts(result);
  EXPECT_EQ(result.hosts[0].verdict, Verdict::kReady);
  EXPECT_EQ(result.hosts[1].verdict, Verdict::kNotReady);
  EXPECT_EQ(result.verdict, Verdict::kNotReady);
}

TEST(Verdict, ANetworkErrorIsAFindingOnlyIfNoOtherFailureExplainsIt) {
  CheckResult result;
  result.network_error = Error(Errc::kUnreachable, "", "no common network");
  CheckResult explained = result;
  set_verdicts(result);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].code, "no-common-network");
  EXPECT_EQ(result.findings[0].command, "drun check --network-interfaces NETWORK ...");
  set_verdicts(result);
  EXPECT_EQ(result.findings.size(), 1u);  // not again

  explained.findings = {finding(Severity::kFailure, "not-connected", {})};
  set_verdicts(explained);
  ASSERT_EQ(explained.findings.size(), 1u);
  EXPECT_EQ(explained.findings[0].code, "not-connected");
}

TEST(CheckStatus, SaysTheWorst) {
  CheckResult result;
  EXPECT_EQ(check_status(result, true), kExitOk);
  result.not_saved = Error(Errc::kUsage, "normal.json", "No space left on device");
  EXPECT_EQ(check_status(result, false), kExitUsage);
  result.verdict = Verdict::kWarnings;
  EXPECT_EQ(check_status(result, false), kExitUsage);
  EXPECT_EQ(check_status(result, true), kExitNotReady);
  result.verdict = Verdict::kNotReady;
  EXPECT_EQ(check_status(result, false), kExitNotReady);
  result.network_error = Error(Errc::kUnreachable, "a", "no common network");
  EXPECT_EQ(check_status(result, false), exit_status(Errc::kUnreachable));
}

}  // namespace
}  // namespace drun::check
