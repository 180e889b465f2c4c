#include "netdetect/later_attempts.h"

#include <gtest/gtest.h>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

using Pairs = std::vector<std::pair<int, std::string>>;  // host that tries, address

// Hosts with a network that connects them and one that leads nowhere.
class LaterAttemptsTest : public ::testing::Test {
 protected:
  LaterAttemptsTest() { make_hosts(3); }

  void make_hosts(int n_hosts) {
    std::vector<HostInterfaces> hosts;
    for (int i = 1; i <= n_hosts; ++i) {
      const std::string n = std::to_string(i);
      hosts.push_back(host("h" + n, {nic("data", {"10.0.0." + n + "/24"}), nic("other", {"192.168." + n + ".1/24"})}));
    }
    candidates_ = *find_candidates(hosts, {});
  }

  void note(int from, const std::string& to, ProbeOutcome outcome) {
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      if (candidates_.tried[c].address.text() != to) continue;
      const Attempt attempt{from, static_cast<int>(c)};
      results_[{from, attempt.candidate}] = result(attempt, outcome);
    }
  }
  Pairs named(const std::vector<Attempt>& attempts) const {
    Pairs out;
    for (const auto& a : attempts) {
      out.emplace_back(a.from, candidates_.tried[static_cast<std::size_t>(a.candidate)].address.text());
    }
    return out;
  }
  Pairs unanswered(Unanswered which) const { return named(LaterAttempts(results_, candidates_).unanswered(which)); }
  Pairs untried(const std::vector<int>& anomalies) const {
    return named(LaterAttempts(results_, candidates_).untried(anomalies));
  }

  Candidates candidates_;
  AttemptResults results_;
};

TEST_F(LaterAttemptsTest, RepeatsWhatTimedOutOrGotNoProof) {
  note(0, "10.0.0.2", ProbeOutcome::kReached);
  note(0, "192.168.2.1", ProbeOutcome::kTimedOut);
  note(1, "10.0.0.3", ProbeOutcome::kWrongPeer);
  note(1, "192.168.3.1", ProbeOutcome::kRefused);
  note(2, "10.0.0.2", ProbeOutcome::kTimedOut);
  EXPECT_EQ(unanswered(Unanswered::kAll), (Pairs{{0, "192.168.2.1"}, {1, "10.0.0.3"}, {2, "10.0.0.2"}}));
  EXPECT_EQ(unanswered(Unanswered::kInReachedNetworks), (Pairs{{1, "10.0.0.3"}, {2, "10.0.0.2"}}));
  EXPECT_EQ(unanswered(Unanswered::kAtReachedAddresses), (Pairs{{2, "10.0.0.2"}}));
}

TEST_F(LaterAttemptsTest, WithoutAnyAnswerOnlyAllIsRepeated) {
  note(0, "10.0.0.2", ProbeOutcome::kTimedOut);
  EXPECT_EQ(unanswered(Unanswered::kAll), (Pairs{{0, "10.0.0.2"}}));
  EXPECT_EQ(unanswered(Unanswered::kInReachedNetworks), Pairs{});
  EXPECT_EQ(unanswered(Unanswered::kAtReachedAddresses), Pairs{});
}

TEST_F(LaterAttemptsTest, TriesTheOtherDirectionOfPairsThatFailed) {
  note(0, "10.0.0.2", ProbeOutcome::kTimedOut);
  note(0, "192.168.2.1", ProbeOutcome::kTimedOut);
  note(1, "10.0.0.3", ProbeOutcome::kReached);
  note(1, "192.168.3.1", ProbeOutcome::kTimedOut);
  EXPECT_EQ(untried({}), (Pairs{{1, "10.0.0.1"}, {1, "192.168.1.1"}}));
}

TEST_F(LaterAttemptsTest, TriesAllPairsOfAFewAnomalies) {
  note(0, "10.0.0.2", ProbeOutcome::kReached);
  candidates_.namespaces = {0, 1};  // no other hosts
  EXPECT_EQ(untried({}), Pairs{});
  std::vector<int> anomalies(kFullPlanHosts, 1);
  anomalies.front() = 0;
  EXPECT_EQ(untried(anomalies), (Pairs{{1, "10.0.0.1"}, {1, "192.168.1.1"}}));
  anomalies.push_back(1);
  EXPECT_EQ(untried(anomalies), Pairs{});
}

TEST_F(LaterAttemptsTest, FourOtherHostsAndAnAnomalyTryEachOther) {
  make_hosts(10);
  note(1, "10.0.0.1", ProbeOutcome::kReached);
  note(9, "10.0.0.1", ProbeOutcome::kTimedOut);
  note(6, "10.0.0.1", ProbeOutcome::kReached);
  std::set<int> from;
  std::set<std::string> to;
  for (const auto& [host, address] : untried({0, 5})) {
    if (address == "10.0.0.1") from.insert(host);
    if (host == 0) to.insert(address);
  }
  EXPECT_EQ(from, (std::set<int>{7, 8, 2, 3, 5}));                  // 5 is the other anomaly
  for (const std::string host : {"8", "9", "3", "4", "6", "10"}) {  // 10 for it has tried in vain
    EXPECT_EQ(to.count("10.0.0." + host), 1u) << host;
  }
}

TEST_F(LaterAttemptsTest, HostsOfOneNetworkNamespaceDoNotTryEachOther) {
  candidates_.namespaces = {0, 0};
  EXPECT_EQ(untried({0, 1}), Pairs{});
}

}  // namespace
}  // namespace drun::netdetect::testing
