#include "check/connect_findings.h"

#include <gtest/gtest.h>

namespace drun::check {
namespace {

using std::chrono::duration;

ConnectTimes host(std::string name, double connect, double handshake, double login, double agent, double delivery = 0) {
  ConnectTimes out;
  out.login = {"ssh -p 12345 me@" + name, "10.0.0.1"};
  out.name = std::move(name);
  out.phases = {{transport::Phase::kConnect, duration<double>(connect)},
                {transport::Phase::kHandshake, duration<double>(handshake)},
                {transport::Phase::kLogin, duration<double>(login)},
                {transport::Phase::kAgent, duration<double>(agent)},
                {transport::Phase::kDelivery, duration<double>(delivery)}};
  return out;
}

TEST(ConnectFindings, OneSlowHostIsNamedWithThePhaseThatTakesTheTime) {
  const auto findings =
      connect_findings({host("a", 0, 0.1, 0.1, 0.1), host("b", 0, 0.1, 4, 0.1), host("c", 0, 0.1, 0.1, 0.2)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "ssh-slow");
  EXPECT_EQ(findings[0].hosts, std::vector<int>{1});
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].text, "ssh takes 4.2 s, typical is 400 ms; 4 s of it in login");
  EXPECT_EQ(findings[0].command, "ssh -vvv -p 12345 me@b true");
}

TEST(ConnectFindings, OfTwoHostsTheSlowerOneIsNamed) {
  const auto findings = connect_findings({host("a", 0, 3, 0, 0), host("b", 0, 0.1, 0, 0)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].subject, "a");
  EXPECT_NE(findings[0].text.find("handshake"), std::string::npos);
}

TEST(ConnectFindings, AShellThatIsSlowToStartIsNotTheLogin) {
  const auto findings = connect_findings({host("a", 0, 0, 0, 5), host("b", 0, 0.1, 0, 0)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].command, "time ssh -p 12345 me@a true");
}

TEST(ConnectFindings, OpensshsClientSaysNoMoreThanThatItIsSlow) {
  auto slow = host("a", 0, 0, 0, 0.1);
  slow.phases.emplace_back(transport::Phase::kSsh, duration<double>(4));
  const auto findings = connect_findings({slow, host("b", 0, 0.1, 0, 0)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].command, "ssh -vvv -p 12345 me@a true");
  EXPECT_NE(findings[0].details.at(0).find("does not say how far it got"), std::string::npos);
}

TEST(ConnectFindings, NamesAndPacketsAreTriedWithWhatSshConnectsTo) {
  auto findings = connect_findings({host("a", 5, 0, 0, 0), host("b", 0, 0.1, 0, 0)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].command, "ping -c 20 10.0.0.1");
  auto slow = host("a", 0, 0, 0, 5);
  slow.login.words = "lsh --fast a";
  slow.phases.front() = {transport::Phase::kSsh, duration<double>(9)};
  findings = connect_findings({slow, host("b", 0, 0.1, 0, 0)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].command, "lsh --fast a true") << "no ssh";
}

TEST(ConnectFindings, TheOwnHostHasNoLogin) {
  auto slow = host("localhost", 0, 0, 0, 5);
  slow.login = {"", "localhost"};
  const auto findings = connect_findings({slow, host("b", 0, 0.1, 0, 0)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].command, "uptime");
}

TEST(ConnectFindings, HostsThatAreAllAlikeAreNot) {
  EXPECT_TRUE(connect_findings({}).empty());
  EXPECT_TRUE(connect_findings({host("a", 0, 9, 0, 0)}).empty());
  EXPECT_TRUE(connect_findings({host("a", 0, 9, 0, 0), host("b", 0, 8, 0, 0), host("c", 0, 9, 0, 0)}).empty());
  EXPECT_TRUE(connect_findings({host("a", 0, 0.1, 0, 0), host("b", 0, 0.5, 0, 0)}).empty());
}

TEST(ConnectFindings, TheAgentsOwnWayDoesNotCount) {
  EXPECT_TRUE(connect_findings({host("a", 0, 0.1, 0, 0, 30), host("b", 0, 0.1, 0, 0)}).empty());
}

TEST(ConnectFindings, AnUnreachableHostIsAFailureInItsOwnWords) {
  const auto finding = unreachable_finding(
      2, Error(Errc::kUnreachable, "c", "connect: refused").with_context("named in x").with_hint("ssh c"));
  EXPECT_EQ(finding.severity, Severity::kFailure);
  EXPECT_EQ(finding.subject, "c");
  EXPECT_EQ(finding.text, "connect: refused");
  EXPECT_EQ(finding.details, std::vector<std::string>{"named in x"});
  EXPECT_EQ(finding.command, "ssh c");
}

}  // namespace
}  // namespace drun::check
