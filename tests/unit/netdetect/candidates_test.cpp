#include "netdetect/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Candidates find(const std::vector<HostInterfaces>& hosts, const std::vector<std::string>& wanted = {}) {
  auto found = find_candidates(hosts, wanted);
  EXPECT_TRUE(found) << found.error().message();
  return found ? *found : Candidates{};
}

TEST(Candidates, DropsTheDockerBridgeThatEveryHostHas) {
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("enp3s0", {"10.0.0.1/24"}), nic("docker0", {"172.17.0.1/16"})}),
      host("h1", {nic("eno1", {"10.0.0.2/24"}), nic("docker0", {"172.17.0.1/16"})}),
      host("h2", {nic("eth7", {"10.0.0.3/24"}), nic("docker0", {"172.17.0.1/16"})})};
  const auto found = find(hosts);
  EXPECT_THAT(tried(hosts, found), ElementsAre("h0 enp3s0 10.0.0.1", "h1 eno1 10.0.0.2", "h2 eth7 10.0.0.3"));
  EXPECT_THAT(rejected(hosts, found),
              ElementsAre("h0 docker0: 172.17.0.1 is also on h1 and h2", "h1 docker0: 172.17.0.1 is also on h0 and h2",
                          "h2 docker0: 172.17.0.1 is also on h0 and h1"));
}

TEST(Candidates, CountsAnAddressOnAnIdleButUpBridgeOfAnotherHost) {
  auto idle = nic("docker0", {"172.17.0.1/16"});
  idle.running = false;
  auto down = nic("spare", {"10.0.0.1/24"});
  down.up = false;
  const std::vector<HostInterfaces> hosts = {
      host("h0", {nic("eth0", {"10.0.0.1/24"}), nic("docker0", {"172.17.0.1/16"})}),
      host("h1", {nic("eth0", {"10.0.0.2/24"}), idle, down})};
  const auto found = find(hosts);
  EXPECT_THAT(tried(hosts, found), ElementsAre("h0 eth0 10.0.0.1", "h1 eth0 10.0.0.2"));
  EXPECT_THAT(rejected(hosts, found),
              ElementsAre("h0 docker0: 172.17.0.1 is also on h1", "h1 docker0: no carrier", "h1 spare: down"));
}

TEST(Candidates, NamesOnlyTheFirstOfManyOwners) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < 61; ++i) hosts.push_back(host("h" + std::to_string(i), {nic("virbr0", {"192.168.122.1/24"})}));
  const auto found = find(hosts);
  EXPECT_THAT(found.tried, IsEmpty());
  EXPECT_EQ(rejected(hosts, found).front(),
            "h0 virbr0: 192.168.122.1 is also on h1, h2, h3, h4, h5, h6, h7, h8 and 52 more");
}

TEST(Candidates, KeepsEqualAddressesWithinOneNetworkNamespace) {
  std::vector<HostInterfaces> hosts = {host("a", {nic("eth0", {"10.0.0.1/24"})}),
                                       host("b", {nic("eth0", {"10.0.0.1/24"})}),
                                       host("c", {nic("eth0", {"10.0.0.3/24"})})};
  hosts[1].net_namespace = hosts[0].net_namespace;
  const auto found = find(hosts);
  EXPECT_THAT(tried(hosts, found), ElementsAre("a eth0 10.0.0.1", "b eth0 10.0.0.1", "c eth0 10.0.0.3"));
  EXPECT_THAT(found.namespaces, ElementsAre(0, 0, 1));
}

TEST(Candidates, TakesHostsWithoutANamespaceForDifferentOnes) {
  std::vector<HostInterfaces> hosts = {host("a", {nic("eth0", {"10.0.0.1/24"})}),
                                       host("b", {nic("eth0", {"10.0.0.1/24"})})};
  hosts[0].net_namespace = hosts[1].net_namespace = "";
  const auto found = find(hosts);
  EXPECT_THAT(found.namespaces, ElementsAre(0, 1));
  EXPECT_THAT(found.tried, IsEmpty());
}

TEST(Candidates, RejectsWhatNoPeerCanUseAndSaysWhy) {
  auto down = nic("eth1", {"10.1.0.1/24"});
  down.up = false;
  auto unplugged = nic("eth2", {"10.2.0.1/24"});
  unplugged.running = false;
  auto port = nic("eth3", {});
  port.master = "bond0";
  auto wide = nic("eth0", {"169.254.3.4/16", "fe80::1/64", "fd00::1/64", "fd00::2/64", "fd00::3/64", "10.0.0.1/24"});
  wide.addresses[3].temporary = true;
  wide.addresses[4].deprecated = true;
  const std::vector<HostInterfaces> hosts = {
      host("h", {wide, down, unplugged, port, nic("empty0", {}), nic("dummy0", {"127.0.0.5/32"})})};
  const auto found = find(hosts);
  EXPECT_THAT(tried(hosts, found), ElementsAre("h eth0 fd00::1", "h eth0 10.0.0.1"));
  EXPECT_THAT(rejected(hosts, found),
              UnorderedElementsAre("h eth0: 169.254.3.4 is link-local", "h eth0: fe80::1 is link-local",
                                   "h eth0: fd00::2 is temporary", "h eth0: fd00::3 is deprecated or not ready",
                                   "h eth1: down", "h eth2: no carrier", "h eth3: no address, part of bond0",
                                   "h empty0: no address", "h dummy0: 127.0.0.5 is a loopback address"));
  EXPECT_EQ(found.rejected.front().reason, "loopback");
}

TEST(Candidates, AcceptsNoHostsAtAll) {
  const auto found = find({});
  EXPECT_THAT(found.tried, IsEmpty());
  EXPECT_THAT(found.rejected, IsEmpty());
}

struct WantedCase {
  std::vector<std::string> wanted;
  std::vector<std::string> expected;
};

class Wanted : public ::testing::TestWithParam<WantedCase> {
 protected:
  std::vector<HostInterfaces> hosts_ = {
      host("a", {nic("enp3s0", {"10.0.0.1/24", "fd00::1/64"}), nic("ib0", {"10.1.0.1/24"})}),
      host("b", {nic("enp4s0", {"10.0.0.2/24", "fd00::2/64"}), nic("ib1", {"10.1.0.2/24"})})};
};

TEST_P(Wanted, Narrows) { EXPECT_EQ(tried(hosts_, find(hosts_, GetParam().wanted)), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Words, Wanted,
    ::testing::Values(WantedCase{{"ib0", "ib1"}, {"a ib0 10.1.0.1", "b ib1 10.1.0.2"}},
                      WantedCase{{"ib0"}, {"a ib0 10.1.0.1"}},
                      WantedCase{{"ib*"}, {"a ib0 10.1.0.1", "b ib1 10.1.0.2"}},
                      WantedCase{{" ib? "}, {"a ib0 10.1.0.1", "b ib1 10.1.0.2"}},
                      WantedCase{{"10.0.0.0/24"}, {"a enp3s0 10.0.0.1", "b enp4s0 10.0.0.2"}},
                      WantedCase{{"10.0.0.77/24"}, {"a enp3s0 10.0.0.1", "b enp4s0 10.0.0.2"}},
                      WantedCase{{"10.0.0.0/15"},
                                 {"a enp3s0 10.0.0.1", "a ib0 10.1.0.1", "b enp4s0 10.0.0.2", "b ib1 10.1.0.2"}},
                      WantedCase{{"fd00::/16"}, {"a enp3s0 fd00::1", "b enp4s0 fd00::2"}},
                      WantedCase{{"10.1.0.1", "enp4s0"}, {"a ib0 10.1.0.1", "b enp4s0 10.0.0.2", "b enp4s0 fd00::2"}},
                      WantedCase{{"lo"}, {}}));

TEST(Candidates, SaysWhatIsNotWanted) {
  const std::vector<HostInterfaces> hosts = {
      host("a", {nic("eth0", {"10.0.0.1/24", "10.9.0.1/24"}), nic("eth1", {"10.1.0.1/24"})})};
  const auto found = find(hosts, {"10.0.0.0/24"});
  EXPECT_THAT(rejected(hosts, found),
              ElementsAre("a lo: not in --network-interfaces", "a eth0: 10.9.0.1 is not in --network-interfaces",
                          "a eth1: not in --network-interfaces"));
}

TEST(Candidates, RefusesAWordThatFitsNothing) {
  const std::vector<HostInterfaces> hosts = {host("a", {nic("enp3s0", {"10.0.0.1/24"})}),
                                             host("b", {nic("eno1", {"10.0.0.2/24"})})};
  const auto found = find_candidates(hosts, {"enp3s0", "enp3so"});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kUsage);
  EXPECT_EQ(found.error().message(), "--network-interfaces: 'enp3so' fits no interface of any host");
  EXPECT_EQ(found.error().context, "interfaces: eno1, enp3s0 and lo");
  EXPECT_EQ(found.error().hint, "--network-interfaces enp3s0");
}

TEST(Candidates, ListsTheNetworksWhenANetworkFitsNothing) {
  const std::vector<HostInterfaces> hosts = {host("a", {nic("eth0", {"10.0.0.1/24", "fe80::1/64", "fd00::1/64"})})};
  const auto found = find_candidates(hosts, {"10.0.1.0/24"});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().context, "networks: 10.0.0.0/24 and fd00::/64");
}

TEST(Candidates, RefusesMalformedWords) {
  const std::vector<HostInterfaces> hosts = {host("a", {nic("eth0", {"10.0.0.1/24"})})};
  for (const std::string bad : {"", "  ", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "fd00::/129", "/8",
                                "^docker0", "=eth0", "eth0/24"}) {
    const auto found = find_candidates(hosts, {bad});
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error().code, Errc::kUsage) << bad;
    EXPECT_EQ(found.error().subject, "--network-interfaces") << bad;
  }
  EXPECT_THAT(find_candidates(hosts, {"=eth0"}).error().hint, HasSubstr("--network-interfaces eth0"));
}

}  // namespace
}  // namespace drun::netdetect::testing
