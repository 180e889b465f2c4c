#include "netdetect/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> picks(const Choice& choice) {
  std::vector<std::string> out;
  for (const auto& h : choice.hosts) out.push_back(h.interface + " " + h.address.text());
  return out;
}

template <typename F>
Choice run(const std::vector<HostInterfaces>& hosts, F answer, const std::vector<std::string>& wanted = {}) {
  const auto candidates = find_candidates(hosts, wanted);
  EXPECT_TRUE(candidates);
  const auto choice = choose(hosts, *candidates, play(hosts, *candidates, answer));
  EXPECT_TRUE(choice) << choice.error().message() << "\n" << choice.error().context;
  return choice ? *choice : Choice{};
}

TEST(Choose, TakesDifferentNamesPastDockerAndASecondSubnetThatIsNotConnected) {
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("docker0", {"172.17.0.1/16"}), nic("enp3s0", {"10.0.0.1/24"}), nic("eth9", {"192.168.50.1/24"})}),
      host("h1",
           {nic("docker0", {"172.17.0.1/16"}), nic("enp3s0", {"192.168.50.2/24"}), nic("eno1", {"10.0.0.2/24"})})};
  const auto choice = run(hosts, [](int, const Candidate& to) {
    return to.address.text().rfind("10.", 0) == 0 ? ProbeOutcome::kReached : ProbeOutcome::kTimedOut;
  });
  EXPECT_THAT(picks(choice), ElementsAre("enp3s0 10.0.0.1", "eno1 10.0.0.2"));
  EXPECT_THAT(choice.hosts[1].interfaces, ElementsAre("eno1"));
  EXPECT_TRUE(choice.hosts[0].reached_by_all);
  EXPECT_THAT(choice.reach, ElementsAre(ElementsAre(1, 1), ElementsAre(1, 1)));
  EXPECT_THAT(choice.notes[0], HasSubstr("h0: enp3s0 10.0.0.1, speed unknown, reached in 1 attempt"));
}

TEST(Choose, PrefersSpeedButNeverOverReachability) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < 3; ++i) {
    const std::string last = "." + std::to_string(i + 1) + "/24";
    const std::vector<Interface> nics = {nic("slow", {"10.0.0" + last}, 1000), nic("fast", {"10.1.0" + last}, 25000),
                                         nic("decoy", {"10.2.0" + last}, 100000)};
    hosts.push_back(host("h" + std::to_string(i), nics));
  }
  const auto choice = run(hosts, [](int from, const Candidate& to) {
    const bool decoy = to.address.text().rfind("10.2.", 0) == 0;
    return decoy && from == 2 ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  // h0 and h1 reach the decoy of h2; the decoys of the others are not reached by h2.
  EXPECT_THAT(picks(choice), ElementsAre("fast 10.1.0.1", "fast 10.1.0.2", "decoy 10.2.0.3"));
}

struct OrderCase {
  const char* name;
  Interface better;
  Interface worse;
};

Interface with(Interface n, void (*change)(Interface&)) {
  change(n);
  return n;
}

class Order : public ::testing::TestWithParam<OrderCase> {};

TEST_P(Order, TakesTheBetterInEitherListing) {
  const auto& c = GetParam();
  for (const bool swap : {false, true}) {
    std::vector<Interface> nics = {c.better, c.worse};
    if (swap) std::swap(nics[0], nics[1]);
    const std::vector<HostInterfaces> hosts = {host("h0", nics),
                                               host("h1", {nic("e", {"10.0.0.99/24", "fd00::99/64"}, 1)})};
    EXPECT_EQ(run(hosts, all_reached).hosts[0].interface, c.better.name) << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Order,
    ::testing::Values(OrderCase{"speed", nic("z", {"10.8.0.1/24"}, 10000), nic("a", {"10.9.0.1/24"}, 1000)},
                      OrderCase{"known before unknown", nic("z", {"10.8.0.1/24"}, 10), nic("a", {"10.9.0.1/24"}, 0)},
                      OrderCase{"rdma", with(nic("z", {"10.8.0.1/24"}, 1000), [](Interface& n) { n.rdma = true; }),
                                nic("a", {"10.9.0.1/24"}, 1000)},
                      OrderCase{"no tunnel", nic("z", {"10.8.0.1/24"}),
                                with(nic("a", {"10.9.0.1/24"}), [](Interface& n) { n.kind = "wireguard"; })},
                      OrderCase{"shared network", nic("z", {"10.0.0.1/24"}, 1000), nic("a", {"10.9.0.1/24"}, 1000)},
                      OrderCase{"route metric",
                                with(nic("z", {"10.8.0.1/24"}), [](Interface& n) { n.route_metric = 100; }),
                                with(nic("a", {"10.9.0.1/24"}), [](Interface& n) { n.route_metric = 101; })},
                      OrderCase{"any route before none",
                                with(nic("z", {"10.8.0.1/24"}), [](Interface& n) { n.route_metric = 5000; }),
                                nic("a", {"10.9.0.1/24"})},
                      OrderCase{"IPv4", nic("z", {"10.8.0.1/24"}, 1000), nic("a", {"fd09::1/64"}, 1000)},
                      OrderCase{"name", nic("a", {"10.9.0.1/24"}, 1000), nic("z", {"10.8.0.1/24"}, 1000)}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST(Choose, PrefersTheShorterRoundTripWhenItDiffersByMilliseconds) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("far", {"10.8.0.1/24"}), nic("near", {"10.9.0.1/24"})}),
                                             host("h1", {nic("eth0", {"10.0.0.2/24"})})};
  const auto candidates = find_candidates(hosts, {});
  ASSERT_TRUE(candidates);
  auto results = play(hosts, *candidates, all_reached);
  for (auto& r : results) r.result.micros = r.attempt.candidate == 0 ? 900 : 200;  // noise
  EXPECT_EQ(choose(hosts, *candidates, results)->hosts[0].interface, "far");
  for (auto& r : results) r.result.micros = r.attempt.candidate == 0 ? 9000 : 200;
  EXPECT_EQ(choose(hosts, *candidates, results)->hosts[0].interface, "near");
}

TEST(Choose, GoesByWhatWasMeasured) {
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("eth0", {"10.0.0.1/24"}), nic("eth1", {"10.1.0.1/24"}), nic("eth2", {"10.2.0.1/24"}, 1000)}),
      host("h1", {nic("eth0", {"10.0.0.2/24"}), nic("eth1", {"10.1.0.2/24"}), nic("eth2", {"10.2.0.2/24"}, 1000)})};
  auto candidates = find_candidates(hosts, {});
  ASSERT_TRUE(candidates);
  const auto results = play(hosts, *candidates, all_reached);
  EXPECT_THAT(picks(*choose(hosts, *candidates, results)), ElementsAre("eth2 10.2.0.1", "eth2 10.2.0.2"));
  for (auto& c : candidates->tried) {
    const std::string text = c.address.text();
    c.measured_mbps = text.rfind("10.0.", 0) == 0 ? 94 : text.rfind("10.1.", 0) == 0 ? 9400 : 940;
  }
  const auto choice = choose(hosts, *candidates, results);
  EXPECT_THAT(picks(*choice), ElementsAre("eth1 10.1.0.1", "eth1 10.1.0.2"));
  EXPECT_THAT(choice->notes[0], HasSubstr("9400 Mb/s (measured)"));
}

TEST(Choose, TakesMeasurementsThatAreNearEachOtherForEqual) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"10.0.0.1/24"}), nic("eth1", {"10.1.0.1/24"})}),
                                             host("h1", {nic("eth0", {"10.0.0.2/24"}), nic("eth1", {"10.1.0.2/24"})})};
  auto candidates = find_candidates(hosts, {});
  ASSERT_TRUE(candidates);
  const auto results = play(hosts, *candidates, all_reached);
  // Noise must not make h0 and h1 choose different networks.
  candidates->tried[0].measured_mbps = 941;
  candidates->tried[1].measured_mbps = 938;
  candidates->tried[2].measured_mbps = 937;
  candidates->tried[3].measured_mbps = 942;
  EXPECT_THAT(picks(*choose(hosts, *candidates, results)), ElementsAre("eth0 10.0.0.1", "eth0 10.0.0.2"));
}

TEST(Choose, TakesOneNetworkForAllHostsWhenTwoAreEquallyGood) {
  // The same two networks, cabled crosswise.
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("eth0", {"10.0.0.1/24"}, 1000), nic("eth1", {"10.1.0.1/24"}, 1000)}),
      host("h1", {nic("eth0", {"10.1.0.2/24"}, 1000), nic("eth1", {"10.0.0.2/24"}, 1000)})};
  const auto choice = run(hosts, all_reached);
  EXPECT_THAT(picks(choice), ElementsAre("eth0 10.0.0.1", "eth1 10.0.0.2"));
  EXPECT_THAT(choice.hosts[1].interfaces, ElementsAre("eth1", "eth0"));
}

TEST(Choose, ListsOnlyGoodInterfacesOfTheSameKnownSpeedAndKind) {
  auto bridge = nic("br0", {"10.3.0.1/24"}, 25000);
  bridge.kind = "bridge";
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("eth0", {"10.0.0.1/24", "10.0.9.1/24"}, 25000), nic("eth1", {"10.1.0.1/24"}, 25000),
                  nic("bad", {"10.2.0.1/24"}, 25000), bridge, nic("slow", {"10.4.0.1/24"}, 1000),
                  nic("six", {"fd00::1/64"}, 25000)}),
      host("h1", {nic("eth0", {"10.0.0.2/24"}), nic("eth1", {"10.1.0.2/24"})})};
  const auto choice = run(hosts, [](int, const Candidate& to) {
    return to.address.text() == "10.2.0.1" ? ProbeOutcome::kRefused : ProbeOutcome::kReached;
  });
  EXPECT_THAT(choice.hosts[0].interfaces, ElementsAre("eth0", "eth1"));
  EXPECT_THAT(choice.hosts[1].interfaces, ElementsAre("eth0"));  // unknown speeds may differ
}

TEST(Choose, WorksWithIpv6Only) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"fe80::1/64", "fd00::1/64"})}),
                                             host("h1", {nic("eth1", {"fe80::1/64", "fd00::2/64"})})};
  EXPECT_THAT(picks(run(hosts, all_reached)), ElementsAre("eth0 fd00::1", "eth1 fd00::2"));
}

TEST(Choose, TakesTheFamilyThatAllHostsHave) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"10.0.0.1/24", "fd00::1/64"})}),
                                             host("h1", {nic("eth0", {"10.0.0.2/24", "fd00::2/64"})}),
                                             host("h2", {nic("eth0", {"fd00::3/64"})})};
  EXPECT_THAT(picks(run(hosts, all_reached)), ElementsAre("eth0 fd00::1", "eth0 fd00::2", "eth0 fd00::3"));
}

TEST(Choose, TakesIpv6WhereOnlyItRunsOnTheFastNetwork) {
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("mgmt", {"10.0.0.1/24"}, 1000), nic("fab", {"fd00::1/64"}, 100000)}),
      host("h1", {nic("mgmt", {"10.0.0.2/24"}, 1000), nic("fab", {"fd00::2/64"}, 100000)})};
  EXPECT_THAT(picks(run(hosts, all_reached)), ElementsAre("fab fd00::1", "fab fd00::2"));
}

TEST(Choose, MixesFamiliesOnlyWhenThereIsNoOther) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"10.0.0.1/24"})}),
                                             host("h1", {nic("eth0", {"fd00::2/64"})})};
  const auto choice = run(hosts, all_reached);
  EXPECT_THAT(picks(choice), ElementsAre("eth0 10.0.0.1", "eth0 fd00::2"));
  EXPECT_THAT(choice.notes.back(), HasSubstr("no address family"));
}

TEST(Choose, GivesASingleHostLoopback) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"10.0.0.1/24"})})};
  const auto choice = run(hosts, all_reached);
  EXPECT_THAT(picks(choice), ElementsAre("lo 127.0.0.1"));
  EXPECT_THAT(choice.hosts[0].interfaces, ElementsAre("lo"));
  EXPECT_THAT(choice.reach, ElementsAre(ElementsAre(1)));
}

TEST(Choose, GivesHostsOfOneNamespaceARealAddressIfThereIsOne) {
  std::vector<HostInterfaces> hosts = {host("a", {nic("eth0", {"10.0.0.1/24"}, 10)}),
                                       host("b", {nic("eth0", {"10.0.0.1/24"}, 10)})};
  hosts[1].net_namespace = hosts[0].net_namespace;
  EXPECT_TRUE(plan_attempts(2, *find_candidates(hosts, {}), 1).empty());
  EXPECT_THAT(picks(run(hosts, all_reached)), ElementsAre("eth0 10.0.0.1", "eth0 10.0.0.1"));
  for (auto& h : hosts) h.interfaces.pop_back();
  EXPECT_THAT(picks(run(hosts, all_reached)), ElementsAre("lo 127.0.0.1", "lo 127.0.0.1"));
}

TEST(Choose, GivesHostsOfOneNamespaceTheSameAgainstTheOthers) {
  std::vector<HostInterfaces> hosts = {host("a", {nic("eth0", {"10.0.0.1/24"}, 10), nic("eth1", {"10.1.0.1/24"}, 100)}),
                                       host("b", {nic("eth0", {"10.0.0.1/24"}, 10), nic("eth1", {"10.1.0.1/24"}, 100)}),
                                       host("c", {nic("eth0", {"10.0.0.3/24"}, 10)})};
  hosts[1].net_namespace = hosts[0].net_namespace;
  // c reaches both addresses of a, but only the slower one of b.
  const auto choice = run(hosts, [](int, const Candidate& to) {
    return to.host == 1 && to.address.text() == "10.1.0.1" ? ProbeOutcome::kTimedOut : ProbeOutcome::kReached;
  });
  EXPECT_THAT(picks(choice), ElementsAre("eth0 10.0.0.1", "eth0 10.0.0.1", "eth0 10.0.0.3"));
  EXPECT_THAT(choice.reach, ElementsAre(ElementsAre(1, 1, 1), ElementsAre(1, 1, 1), ElementsAre(1, 1, 1)));
}

TEST(Choose, ReturnsNothingForNoHosts) {
  const auto choice = choose({}, {}, {});
  ASSERT_TRUE(choice);
  EXPECT_TRUE(choice->hosts.empty());
}

TEST(Choose, MarksPairsThatWereNotTried) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < 40; ++i) {
    hosts.push_back(host("h" + std::to_string(i), {nic("eth0", {"10.0.0." + std::to_string(i + 1) + "/24"})}));
  }
  const auto choice = run(hosts, all_reached);
  int n_tried = 0;
  int n_untried = 0;
  for (const auto& row : choice.reach) {
    n_tried += static_cast<int>(std::count(row.begin(), row.end(), 1));
    n_untried += static_cast<int>(std::count(row.begin(), row.end(), -1));
  }
  EXPECT_EQ(n_tried, 40 * 5);  // 4 triers and itself
  EXPECT_EQ(n_untried, 40 * 35);
}

TEST(Choose, IgnoresResultsThatNameNothing) {
  const std::vector<HostInterfaces> hosts = {host("h0", {nic("eth0", {"10.0.0.1/24"})}),
                                             host("h1", {nic("eth0", {"10.0.0.2/24"})})};
  const auto candidates = find_candidates(hosts, {});
  auto results = play(hosts, *candidates, all_reached);
  for (const Attempt bad : {Attempt{-1, 0}, Attempt{0, -1}, Attempt{2, 0}, Attempt{0, 2}, Attempt{0, 0}}) {
    results.push_back(result(bad, ProbeOutcome::kRefused));
  }
  EXPECT_TRUE(choose(hosts, *candidates, results));
}

}  // namespace
}  // namespace drun::netdetect::testing
