#include "netdetect/nic_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect {
namespace {

using ::testing::ElementsAre;
using testing::host;
using ::testing::IsEmpty;
using testing::nic;
using ::testing::Pair;

// Two NICs on each host, in networks 10.0.0.0/24 and 10.1.0.0/24.
std::vector<HostInterfaces> hosts_with(int n, int first_mbps, int second_mbps) {
  std::vector<HostInterfaces> out;
  for (int i = 0; i < n; ++i) {
    const std::string last = "." + std::to_string(i + 1) + "/24";
    out.push_back(host("h" + std::to_string(i),
                       {nic("eth0", {"10.0.0" + last}, first_mbps), nic("eth1", {"10.1.0" + last}, second_mbps)}));
  }
  return out;
}

struct Found {
  Candidates candidates;
  std::vector<NetworkToMeasure> networks;
};

template <typename F>
Found find(const std::vector<HostInterfaces>& hosts, F answer) {
  Found out;
  auto candidates = find_candidates(hosts, {});
  EXPECT_TRUE(candidates);
  out.candidates = std::move(*candidates);
  const auto results = testing::play(hosts, out.candidates, answer);
  const auto choice = choose(hosts, out.candidates, results);
  EXPECT_TRUE(choice);
  out.networks = networks_to_measure(hosts, out.candidates, results, *choice);
  return out;
}

std::vector<std::string> names(const Found& found) {
  std::vector<std::string> out;
  for (const auto& network : found.networks) out.push_back(network.network);
  return out;
}

TEST(NicSpeed, IsMeasuredWhereNoDriverSaysIt) {
  const auto hosts = hosts_with(3, 0, 0);
  const Found found = find(hosts, testing::SameNetwork{hosts});
  EXPECT_THAT(names(found), ElementsAre("10.0.0.0/24", "10.1.0.0/24"));
  for (const auto& network : found.networks) {
    std::vector<int> of;
    for (const std::size_t c : network.candidates) of.push_back(found.candidates.tried[c].host);
    EXPECT_THAT(of, ElementsAre(0, 1, 2));
  }
}

TEST(NicSpeed, IsNotMeasuredWhereDriversSayItOrThereIsNoChoice) {
  const auto known = hosts_with(3, 1000, 10000);
  EXPECT_THAT(names(find(known, testing::SameNetwork{known})), IsEmpty());
  const auto unknown = hosts_with(3, 0, 0);
  const auto first_only = [](int, const Candidate& to) {
    return to.address.text().rfind("10.0.", 0) == 0 ? ProbeOutcome::kReached : ProbeOutcome::kTimedOut;
  };
  EXPECT_THAT(names(find(unknown, first_only)), IsEmpty());
}

TEST(NicSpeed, IsMeasuredAcrossSubnetsOfOneHostEach) {
  std::vector<HostInterfaces> hosts;
  for (const std::string i : {"1", "2", "3"}) {
    hosts.push_back(host("h" + i, {nic("eth0", {"10.0.0." + i + "/24"}, 0), nic("eth1", {"10.1." + i + ".1/24"}, 0),
                                   nic("eth2", {"10.2.0." + i + "/32"}, 0)}));
  }
  const Found found = find(hosts, [](int, const Candidate&) { return ProbeOutcome::kReached; });
  EXPECT_THAT(names(found), ElementsAre("10.0.0.0/24", "subnets of eth1", "subnets of eth2"));
  EXPECT_THAT(pairs_to_measure(found.networks[1], hosts, found.candidates), ElementsAre(Pair(0, 1)));
  auto measured = found.candidates;
  set_speeds(found.networks, {900, 9000, 500}, measured);
  const auto results = testing::play(hosts, measured, [](int, const Candidate&) { return ProbeOutcome::kReached; });
  const auto choice = choose(hosts, measured, results);
  ASSERT_TRUE(choice);
  for (const auto& chosen : choice->hosts) EXPECT_EQ(chosen.interface, "eth1");
}

TEST(NicSpeed, OneUnknownSpeedIsEnough) {
  const auto hosts = hosts_with(2, 0, 1000);
  EXPECT_THAT(names(find(hosts, testing::SameNetwork{hosts})), ElementsAre("10.0.0.0/24", "10.1.0.0/24"));
}

// `places` names each host's machine and namespace: "boot|namespace".
std::vector<HostPair> pairs(const std::vector<std::string>& places) {
  auto hosts = hosts_with(static_cast<int>(places.size()), 0, 0);
  for (std::size_t i = 0; i < places.size(); ++i) hosts[i].net_namespace = places[i];
  Found found;
  auto candidates = find_candidates(hosts, {});
  EXPECT_TRUE(candidates);
  NetworkToMeasure network;
  for (std::size_t c = 0; c < candidates->tried.size(); ++c) {
    if (candidates->tried[c].address.text().rfind("10.0.", 0) == 0) network.candidates.push_back(c);
  }
  return pairs_to_measure(network, hosts, *candidates);
}

TEST(NicSpeed, PairsAreOfDifferentMachinesIfThereAreSuch) {
  EXPECT_THAT(pairs({"a|1", "b|1", "c|1", "d|1", "e|1"}), ElementsAre(Pair(0, 1), Pair(2, 3)));
  EXPECT_THAT(pairs({"a|1", "a|2", "b|1", "b|2"}), ElementsAre(Pair(0, 2), Pair(1, 3)));
  EXPECT_THAT(pairs({"a|1", "a|2", "a|3"}), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(pairs({"a|1", "a|2", "a|3", "b|1"}), ElementsAre(Pair(0, 3), Pair(1, 2)));
}

TEST(NicSpeed, NothingIsMeasuredInsideANamespace) {
  EXPECT_THAT(pairs({"a|1", "a|1"}), IsEmpty());
  EXPECT_THAT(pairs({"a|1", "a|1", "a|2"}), ElementsAre(Pair(0, 2)));
  EXPECT_THAT(pairs({"a|1"}), IsEmpty());
  EXPECT_THAT(pairs({}), IsEmpty());
}

TEST(NicSpeed, CountsForAllAddressesOfAnInterface) {
  std::vector<HostInterfaces> hosts;
  for (const std::string last : {"1", "2"}) {
    hosts.push_back(host("h" + last, {nic("eth0", {"10.0.0." + last + "/24", "fd00::" + last + "/64"}, 10000),
                                      nic("eth1", {"10.1.0." + last + "/24"}, 0)}));
  }
  Found found = find(hosts, testing::SameNetwork{hosts});
  ASSERT_THAT(names(found), ElementsAre("10.0.0.0/24", "10.1.0.0/24"));
  set_speeds(found.networks, {8000, 94}, found.candidates);
  const auto results = testing::play(hosts, found.candidates, testing::SameNetwork{hosts});
  const auto choice = choose(hosts, found.candidates, results);
  ASSERT_TRUE(choice);
  // With the driver's 10000 for eth0, its IPv6 address would seem faster than the measurement over the same cable.
  EXPECT_EQ(choice->hosts[0].address.text(), "10.0.0.1");
  for (const auto& c : found.candidates.tried) {
    EXPECT_EQ(c.measured_mbps, c.address.text().rfind("10.1.", 0) == 0 ? 94 : 8000) << c.address.text();
  }
}

TEST(NicSpeed, OfANetworkIsTheMedianOfItsDirections) {
  EXPECT_EQ(network_mbps({}), 0);
  Link link;
  link.a = 0;
  link.b = 1;
  EXPECT_EQ(network_mbps({link}), 0);  // it failed
  Rate rate;
  rate.n_streams = 1;
  rate.bits_per_second = 90e6;
  link.forward.rates.push_back(rate);
  rate.bits_per_second = 94e6;
  link.backward.rates.push_back(rate);
  Link slow;
  slow.a = 2;
  slow.b = 3;
  rate.bits_per_second = 1e6;
  slow.forward.rates.push_back(rate);  // the other direction failed
  EXPECT_EQ(network_mbps({link, slow}), 90);
}

}  // namespace
}  // namespace drun::netdetect
