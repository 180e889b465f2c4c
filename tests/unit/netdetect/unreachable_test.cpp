// The error of choose(): which host it names, and that it lists everything that was tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <typename F>
Error run(const std::vector<HostInterfaces>& hosts, F answer, const std::vector<std::string>& wanted = {}) {
  const auto candidates = find_candidates(hosts, wanted);
  EXPECT_TRUE(candidates);
  const auto choice = choose(hosts, *candidates, play(hosts, *candidates, answer));
  EXPECT_FALSE(choice);
  if (choice) return {};
  EXPECT_EQ(choice.error().code, Errc::kUnreachable);
  EXPECT_FALSE(choice.error().hint.empty());
  return choice.error();
}

std::vector<HostInterfaces> simple_hosts(int n) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < n; ++i) {
    hosts.push_back(host("h" + std::to_string(i), {nic("eth0", {"10.0.0." + std::to_string(i + 1) + "/24"}),
                                                   nic("docker0", {"172.17.0.1/16"})}));
  }
  return hosts;
}

TEST(Unreachable, BlamesTheHostThatIsCutOff) {
  const Error error = run(simple_hosts(4), [](int from, const Candidate& to) {
    return from == 2 || to.host == 2 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  EXPECT_EQ(error.message(), "h2: no connection with the other hosts comes about, in either direction");
  EXPECT_EQ(error.context,
            "h2: did not reach h0, h1 and h3\n"
            "h2: eth0: 10.0.0.3 timed out from h0, h1 and h3\n"
            "h2: docker0: 172.17.0.1 is also on h0, h1 and h3");
  EXPECT_THAT(error.hint, HasSubstr("firewall"));
}

// The duplicate address explains the failure; link-local addresses don't.
TEST(Unreachable, AnAddressThatAnotherHostHasAsWellComesFirst) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"10.0.0.1/24", "fe80::1/64"})}),
                                             host("h1", {nic("eth1", {"10.0.0.5/24", "fe80::2/64"})}),
                                             host("h2", {nic("eth2", {"10.0.0.6/24", "10.0.0.5/24", "fe80::3/64"})})};
  const Error error = run(hosts, [](int from, const Candidate& to) {
    return from == 1 || to.host == 1 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  EXPECT_THAT(error.context, ::testing::StartsWith("10.0.0.5 is on h1 (eth1) and h2 (eth2)\n"));
  EXPECT_THAT(error.context, Not(HasSubstr("link-local")));
  EXPECT_THAT(error.context, Not(HasSubstr("loopback")));
  EXPECT_THAT(error.hint, HasSubstr("another address than 10.0.0.5"));
  EXPECT_THAT(error.hint, Not(HasSubstr("firewall")));
}

TEST(Unreachable, NamesTheHostsFromWhichOneIsCutOff) {
  const Error error = run(simple_hosts(5), [](int from, const Candidate& to) {
    const int other = from == 2 ? to.host : to.host == 2 ? from : -1;
    return other == 0 || other == 4 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  EXPECT_EQ(error.message(), "h2: no connection with h0 and h4 comes about, in either direction");
  EXPECT_THAT(error.context, HasSubstr("h2: did not reach h0 and h4\n"));
  EXPECT_THAT(error.context, Not(HasSubstr("\nh0: ")));
}

TEST(Unreachable, NamesTwoHostsThatAcceptNoConnection) {
  const Error error = run(simple_hosts(4), [](int, const Candidate& to) {
    return to.host >= 2 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  EXPECT_EQ(error.message(), "h2 and h3: neither can connect to the other on any network");
  EXPECT_THAT(error.context, HasSubstr("h2: eth0: 10.0.0.3 timed out from h0, h1 and h3\n"));
  EXPECT_THAT(error.context, HasSubstr("h3: eth0: 10.0.0.4 timed out from h0, h1 and h2\n"));
  EXPECT_THAT(error.context, Not(HasSubstr("did not reach")));
}

TEST(Unreachable, NamesThreeHostsThatAcceptNoConnection) {
  const Error error = run(simple_hosts(6), [](int, const Candidate& to) {
    return to.host >= 3 ? ProbeOutcome::kRefused : ProbeOutcome::kReached;
  });
  EXPECT_EQ(error.message(), "h3, h4 and h5: no two of them can connect to each other");
}

TEST(Unreachable, BlamesBothEndsOfALinkThatIsCut) {
  const Error error = run(simple_hosts(4), [](int from, const Candidate& to) {
    return from + to.host == 3 && from != 0 && from != 3 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  EXPECT_EQ(error.subject, "h1 and h2");
}

TEST(Unreachable, BlamesBothOfTwo) {
  const Error error = run(simple_hosts(2), [](int, const Candidate&) { return ProbeOutcome::kRefused; });
  EXPECT_EQ(error.message(), "h0 and h1: neither can connect to the other on any network");
  EXPECT_THAT(error.context, HasSubstr("h0: eth0: 10.0.0.1 refused from h1\n"));
  EXPECT_THAT(error.context, HasSubstr("h1: eth0: 10.0.0.2 refused from h0\n"));
}

TEST(Unreachable, BlamesNobodyWhenNothingWorks) {
  const Error error = run(simple_hosts(5), [](int, const Candidate&) { return ProbeOutcome::kWrongPeer; });
  EXPECT_EQ(error.message(), "no network on which all 5 hosts can be connected");
  for (int i = 1; i <= 5; ++i) {
    EXPECT_THAT(error.context, HasSubstr("10.0.0." + std::to_string(i) + " answered by something else from"));
  }
}

TEST(Unreachable, BlamesTwoHostsThatShareNoNetworkNotTheOneBetweenThem) {
  const std::vector<HostInterfaces> hosts = {host("a", {nic("x", {"10.0.0.1/24"})}),
                                             host("b", {nic("y", {"10.1.0.2/24"})}),
                                             host("c", {nic("x", {"10.0.0.3/24"}), nic("y", {"10.1.0.3/24"})})};
  const Error error = run(hosts, SameNetwork{hosts});
  EXPECT_EQ(error.message(), "a and b: neither can connect to the other on any network");
  EXPECT_THAT(error.context, HasSubstr("a: x: 10.0.0.1 timed out from b; reached from c"));
  EXPECT_THAT(error.context, HasSubstr("b: y: 10.1.0.2 timed out from a; reached from c"));
}

TEST(Unreachable, RefusesAnInterfaceThatTheHostItselfDoesNotUse) {
  // h1 is told to use eth9; no host reaches it there, and the packets of h1 leave by eth0.
  auto hosts = simple_hosts(3);
  hosts[1].interfaces.push_back(nic("eth9", {"192.168.9.2/24"}));
  const Error error = run(
      hosts, [](int, const Candidate& to) { return to.host == 1 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached; },
      {"10.0.0.1", "192.168.9.0/24", "10.0.0.3"});
  EXPECT_EQ(error.message(), "h1: no address is reached, and over the interfaces of these no other host is");
  EXPECT_THAT(error.context, HasSubstr("h1: eth9: 192.168.9.2 timed out from h0 and h2"));
}

TEST(Unreachable, NamesAHostWithoutAnyCandidate) {
  auto hosts = simple_hosts(3);
  hosts[1].interfaces[1].running = false;
  const Error error = run(hosts, all_reached);
  EXPECT_EQ(error.message(), "h1: no address that another host could reach");
  EXPECT_THAT(error.context, HasSubstr("h1: eth0: no carrier"));
  EXPECT_THAT(error.context, Not(HasSubstr("\nh0: ")));
}

TEST(Unreachable, PointsAtTheOptionThatLeftAHostWithNone) {
  auto hosts = simple_hosts(3);
  hosts[2].interfaces[1].name = "enp3s0";
  const Error error = run(hosts, all_reached, {"eth0"});
  EXPECT_EQ(error.message(), "h2: no usable address on an interface in --network-interfaces");
  EXPECT_THAT(error.context, HasSubstr("h2: lo, enp3s0 and docker0: not in --network-interfaces"));
  EXPECT_EQ(error.hint, "leave out --network-interfaces, or add one of h2's: enp3s0");
}

TEST(Unreachable, CarriesTheSystemsWords) {
  const auto hosts = simple_hosts(2);
  const auto candidates = find_candidates(hosts, {});
  auto results = play(hosts, *candidates, [](int, const Candidate&) { return ProbeOutcome::kUnreachable; });
  for (auto& r : results) r.result.detail = "No route to host";
  const auto choice = choose(hosts, *candidates, results);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().context, HasSubstr("h0: eth0: 10.0.0.1 unreachable (No route to host) from h1"));
}

TEST(Unreachable, HintsAtAFirewallWhereOneMayBe) {
  const auto hint = [](ProbeOutcome outcome) {
    return run(simple_hosts(2), [outcome](int, const Candidate&) { return outcome; }).hint;
  };
  EXPECT_THAT(hint(ProbeOutcome::kTimedOut), HasSubstr("a firewall may drop TCP"));
  EXPECT_THAT(hint(ProbeOutcome::kHostUnreachable), HasSubstr("a firewall may reject TCP"));
  EXPECT_THAT(hint(ProbeOutcome::kHostUnreachable), HasSubstr("ip neighbor"));
  EXPECT_EQ(hint(ProbeOutcome::kUnreachable).find("firewall"), std::string::npos);
}

TEST(Unreachable, SaysWhenNothingWasTried) {
  const auto hosts = simple_hosts(2);
  const auto choice = choose(hosts, *find_candidates(hosts, {}), {});
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().context, HasSubstr("10.0.0.1 not tried"));
}

TEST(Unreachable, SummarizesBeyondEightHosts) {
  const Error error = run(simple_hosts(60), [](int, const Candidate&) { return ProbeOutcome::kTimedOut; });
  EXPECT_THAT(error.context, HasSubstr("and 52 more hosts"));
  EXPECT_LT(std::count(error.context.begin(), error.context.end(), '\n'), 40);
}

TEST(Unreachable, StaysQuickForHundredsOfHosts) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < 400; ++i) {
    const std::string address = "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + "/16";
    hosts.push_back(host("h" + std::to_string(i), {nic("eth0", {address})}));
  }
  const auto candidates = find_candidates(hosts, {});
  const auto results = play(hosts, *candidates, [](int, const Candidate&) { return ProbeOutcome::kTimedOut; });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(choose(hosts, *candidates, results));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST(Unreachable, JoinsInterfacesWithTheSameReason) {
  auto hosts = simple_hosts(2);
  hosts[0].interfaces.erase(hosts[0].interfaces.begin() + 1);
  for (int i = 0; i < 100; ++i) hosts[0].interfaces.push_back(nic("veth" + std::to_string(i), {}));
  const Error error = run(hosts, all_reached);
  EXPECT_EQ(error.subject, "h0");
  EXPECT_THAT(error.context, HasSubstr("veth7 and 92 more: no address"));
}

}  // namespace
}  // namespace drun::netdetect::testing
