#include "netdetect/choose_subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<HostInterfaces> simple_hosts(int n) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < n; ++i) {
    hosts.push_back(host("h" + std::to_string(i), {nic("eth0", {"10.0.0." + std::to_string(i + 1) + "/24"})}));
  }
  return hosts;
}

template <typename F>
PartialChoice run(const std::vector<HostInterfaces>& hosts, F answer, const std::vector<int>& gone = {}) {
  const auto candidates = find_candidates(hosts, {});
  EXPECT_TRUE(candidates);
  return choose_subset(hosts, *candidates, play(hosts, *candidates, answer), gone);
}

std::vector<std::string> picks(const PartialChoice& partial) {
  std::vector<std::string> out;
  for (const auto& h : partial.choice.hosts) out.push_back(h.interface.empty() ? "-" : h.address.text());
  return out;
}

TEST(ChooseMost, LeavesNobodyOutWhereAllIsWell) {
  const auto partial = run(simple_hosts(3), all_reached);
  EXPECT_FALSE(partial.error);
  EXPECT_THAT(partial.left_out, IsEmpty());
  EXPECT_THAT(picks(partial), ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
}

TEST(ChooseMost, LeavesOutTheHostThatIsCutOff) {
  const auto partial = run(simple_hosts(4), [](int from, const Candidate& to) {
    return from == 1 || to.host == 1 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  ASSERT_TRUE(partial.error);
  EXPECT_THAT(partial.error->message(), HasSubstr("h1"));
  EXPECT_THAT(partial.left_out, ElementsAre(1));
  EXPECT_THAT(picks(partial), ElementsAre("10.0.0.1", "-", "10.0.0.3", "10.0.0.4"));
  EXPECT_THAT(partial.choice.reach, ElementsAre(ElementsAre(1, 0, 1, 1), ElementsAre(0, 1, 0, 0),
                                                ElementsAre(1, 0, 1, 1), ElementsAre(1, 0, 1, 1)));
}

TEST(ChooseMost, LeavesOutWhoIsGoneWithoutAnError) {
  const auto partial = run(simple_hosts(3),
                           [](int from, const Candidate& to) {
                             return from == 0 || to.host == 0 ? ProbeOutcome::kRefused : ProbeOutcome::kReached;
                           },
                           {0});
  EXPECT_FALSE(partial.error);
  EXPECT_THAT(partial.left_out, ElementsAre(0));
  EXPECT_THAT(picks(partial), ElementsAre("-", "10.0.0.2", "10.0.0.3"));
}

TEST(ChooseMost, GivesNobodyAnythingWhereNoTwoAreLeft) {
  const auto partial = run(simple_hosts(3), [](int, const Candidate&) { return ProbeOutcome::kTimedOut; });
  EXPECT_TRUE(partial.error);
  EXPECT_THAT(partial.left_out, ElementsAre(0, 1, 2));
  EXPECT_THAT(picks(partial), ElementsAre("-", "-", "-"));
  EXPECT_THAT(partial.choice.reach, ElementsAre(ElementsAre(1, 0, 0), ElementsAre(0, 1, 0), ElementsAre(0, 0, 1)));
}

TEST(ChooseMost, GivesASingleHostLoopback) {
  const auto partial = run(simple_hosts(1), all_reached);
  EXPECT_THAT(partial.left_out, IsEmpty());
  EXPECT_THAT(picks(partial), ElementsAre("127.0.0.1"));
}

}  // namespace
}  // namespace drun::netdetect::testing
