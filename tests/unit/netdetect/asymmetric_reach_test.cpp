// Hosts that connect in one direction only: which hosts may, which address each gets, and the messages about it.
#include "netdetect/asymmetric_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kReached = ProbeOutcome::kReached;
constexpr auto kTimedOut = ProbeOutcome::kTimedOut;

template <typename F>
Choice run(const std::vector<HostInterfaces>& hosts, F answer) {
  const auto candidates = find_candidates(hosts, {});
  EXPECT_TRUE(candidates);
  const auto choice = choose(hosts, *candidates, play(hosts, *candidates, answer));
  EXPECT_TRUE(choice) << choice.error().message() << "\n" << choice.error().context;
  return choice ? *choice : Choice{};
}

std::vector<std::string> picks(const Choice& choice) {
  std::vector<std::string> out;
  for (const auto& h : choice.hosts) out.push_back(h.address.text() + (h.reached_by_all ? "" : " (one way)"));
  return out;
}

// Hosts with a second NIC that leads nowhere, and docker0.
std::vector<HostInterfaces> cluster(int n) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < n; ++i) {
    const std::string last = std::to_string(i + 1);
    auto decoy = nic("decoy", {"192.168.10" + last + ".1/24"}, 100000);
    decoy.route_metric = 0;
    hosts.push_back(host("h" + std::to_string(i),
                         {decoy, nic("eth0", {"10.0.0." + last + "/24"}), nic("docker0", {"172.17.0.1/16"})}));
  }
  return hosts;
}

bool is_decoy(const Candidate& to) { return to.address.text().rfind("192.", 0) == 0; }

TEST(OneWay, SaysNothingWhereAllDirectionsWork) {
  const auto choice = run(cluster(3), [](int, const Candidate& to) { return is_decoy(to) ? kTimedOut : kReached; });
  EXPECT_THAT(picks(choice), ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
  EXPECT_THAT(choice.warnings, IsEmpty());
}

TEST(OneWay, GivesAHiddenHostTheInterfaceOverWhichItReachesTheOthers) {
  const auto choice =
      run(cluster(3), [](int, const Candidate& to) { return is_decoy(to) || to.host == 1 ? kTimedOut : kReached; });
  EXPECT_THAT(picks(choice), ElementsAre("10.0.0.1", "10.0.0.2 (one way)", "10.0.0.3"));
  EXPECT_THAT(choice.hosts[1].interfaces, ElementsAre("eth0"));
  EXPECT_THAT(choice.reach, ElementsAre(ElementsAre(1, 0, 1), ElementsAre(1, 1, 1), ElementsAre(1, 0, 1)));
  ASSERT_EQ(choice.warnings.size(), 1U);
  EXPECT_THAT(choice.warnings[0],
              AllOf(HasSubstr("h1 accepts no connections from the other hosts (10.0.0.2 timed out from h0 and h2)"),
                    HasSubstr("torch, Gloo and NCCL"), Not(HasSubstr("MASTER_ADDR"))));
}

TEST(OneWay, OfTwoHostsTheOneThatIsNotReachedIsNamed) {
  const auto choice =
      run(cluster(2), [](int, const Candidate& to) { return is_decoy(to) || to.host == 0 ? kTimedOut : kReached; });
  EXPECT_THAT(picks(choice), ElementsAre("10.0.0.1 (one way)", "10.0.0.2"));
  EXPECT_THAT(choice.warnings, ElementsAre(HasSubstr("h0 accepts no connections")));
}

TEST(OneWay, BlamesTheHostThatReachesNobodyNotTheRest) {
  const auto choice =
      run(cluster(4), [](int from, const Candidate& to) { return is_decoy(to) || from == 2 ? kTimedOut : kReached; });
  EXPECT_THAT(picks(choice), ElementsAre("10.0.0.1 (one way)", "10.0.0.2 (one way)", "10.0.0.3", "10.0.0.4 (one way)"));
  EXPECT_THAT(choice.warnings, ElementsAre(HasSubstr("h2 can't connect to the other hosts (timed out)")));
}

TEST(OneWay, NamesASingleDirection) {
  const auto choice = run(cluster(4), [](int from, const Candidate& to) {
    return is_decoy(to) || (from == 0 && to.host == 1) ? kTimedOut : kReached;
  });
  EXPECT_THAT(choice.warnings, ElementsAre(HasSubstr("no connection from h0 to h1 (timed out): libdrun")));
}

TEST(OneWay, PrefersAGoodSlowAddressToAFastOneThatIsNotReached) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < 3; ++i) {
    const std::string last = "." + std::to_string(i + 1) + "/24";
    hosts.push_back(
        host("h" + std::to_string(i), {nic("slow", {"10.0.0" + last}, 1000), nic("fast", {"10.1.0" + last}, 25000)}));
  }
  const auto choice = run(hosts, [](int, const Candidate& to) {
    return to.host == 1 && to.address.text() == "10.1.0.2" ? kTimedOut : kReached;
  });
  EXPECT_THAT(picks(choice), ElementsAre("10.1.0.1", "10.0.0.2", "10.1.0.3"));
  EXPECT_THAT(choice.warnings, IsEmpty());
}

TEST(OneWay, TakesTheNetworkOfTheOthersForAHiddenHostWithTwo) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < 3; ++i) {
    const std::string last = "." + std::to_string(i + 1) + "/24";
    hosts.push_back(host("h" + std::to_string(i), {nic("a", {"10.0.0" + last}), nic("b", {"10.1.0" + last})}));
  }
  // Network a doesn't work between h0 and h2, so both use b.
  const auto choice = run(hosts, [](int from, const Candidate& to) {
    const bool a = to.address.text().rfind("10.0.", 0) == 0;
    return to.host == 1 || (a && from != 1) ? kTimedOut : kReached;
  });
  EXPECT_THAT(picks(choice), ElementsAre("10.1.0.1", "10.1.0.2 (one way)", "10.1.0.3"));
}

TEST(OneWay, KeepsOneFamilyForAHiddenHost) {
  std::vector<HostInterfaces> hosts;
  for (int i = 1; i <= 3; ++i) {
    const std::string n = std::to_string(i);
    hosts.push_back(host("h" + n, {nic("eth0", {"10.0.0." + n + "/24", "fd00::" + n + "/64"})}));
  }
  const auto choice = run(hosts, [](int, const Candidate& to) { return to.host == 0 ? kTimedOut : kReached; });
  EXPECT_THAT(picks(choice), ElementsAre("10.0.0.1 (one way)", "10.0.0.2", "10.0.0.3"));
}

TEST(OneWay, ConnectsARingOfThreeNetworks) {
  // No network joins all three hosts, but every two share one.
  const std::vector<HostInterfaces> hosts = {host("a", {nic("x", {"10.0.0.1/24"}), nic("z", {"10.2.0.1/24"})}),
                                             host("b", {nic("y", {"10.1.0.2/24"}), nic("x", {"10.0.0.2/24"})}),
                                             host("c", {nic("z", {"10.2.0.3/24"}), nic("y", {"10.1.0.3/24"})})};
  const auto choice = run(hosts, SameNetwork{hosts});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(choice.reach[i][j] == 1 || choice.reach[j][i] == 1);
  }
  EXPECT_FALSE(choice.warnings.empty());
}

TEST(OneWay, CoversHostsOfOneNamespaceOnce) {
  auto hosts = cluster(3);
  hosts.push_back(hosts[1]);
  hosts[3].host = "h1b";  // the same machine, another container
  const auto choice = run(hosts, [](int, const Candidate& to) {
    return is_decoy(to) || to.host == 1 || to.host == 3 ? kTimedOut : kReached;
  });
  EXPECT_THAT(picks(choice), ElementsAre("10.0.0.1", "10.0.0.2 (one way)", "10.0.0.3", "10.0.0.2 (one way)"));
}

}  // namespace
}  // namespace drun::netdetect::testing
