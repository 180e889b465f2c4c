// Lists real interfaces: those of this machine, and those of a namespace made for the test.
#include "netdetect/interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/unit/netdetect/own_namespace.h"

namespace drun::netdetect::testing {
namespace {

using Listing = std::map<std::string, Interface>;

std::string listed() {
  const auto list = list_interfaces();
  ByteWriter out;
  encode(out, list ? *list : std::vector<Interface>{});
  return out.take();
}

Listing decode(const std::string& bytes) {
  ByteReader in(bytes);
  Listing out;
  for (auto& nic : decode_interfaces(in)) out[nic.name] = nic;
  EXPECT_TRUE(in.done());
  return out;
}

std::vector<std::string> texts(const Interface& nic) {
  std::vector<std::string> out;
  for (const auto& address : nic.addresses) out.push_back(address.text() + "/" + std::to_string(address.prefix_length));
  return out;
}

const Address& find(const Interface& nic, const std::string& text) {
  static const Address none;
  for (const auto& address : nic.addresses) {
    if (address.text() == text) return address;
  }
  ADD_FAILURE() << text << " is not on " << nic.name;
  return none;
}

TEST(Interfaces, IncludeOurLoopback) {
  const auto list = list_interfaces();
  ASSERT_TRUE(list) << list.error().message();
  const auto lo = std::find_if(list->begin(), list->end(), [](const Interface& nic) { return nic.loopback; });
  ASSERT_NE(lo, list->end());
  EXPECT_EQ(lo->kind, "loopback");
  EXPECT_GT(lo->index, 0);
  EXPECT_GT(lo->mtu, 0);
}

TEST(Interfaces, TellKindsFlagsAndAddresses) {
  const auto run = in_own_namespace({"ip link add veth0 type veth peer name veth1",
                                     "ip link add br0 type bridge",
                                     "ip link add mac0 link veth0 type macvlan",
                                     "ip link add veth0.7 link veth0 type vlan id 7 || true",  // not in all kernels
                                     "ip tuntap add tun0 mode tun",
                                     "ip link add vx0 type vxlan id 3 dstport 4789",
                                     "ip link set veth1 master br0",
                                     "ip link set veth0 mtu 9000",
                                     "ip addr add 10.0.0.1/24 dev veth0",
                                     "ip addr add 10.0.0.9/24 dev veth0",
                                     "ip addr add fd00::1/64 dev veth0 nodad",
                                     "ip addr add fd00::2/64 dev veth0 nodad preferred_lft 0",
                                     "ip addr add 169.254.7.7/16 dev br0",
                                     "ip addr add 10.5.0.1 peer 10.5.0.2 dev tun0",
                                     "ip link set veth0 up",
                                     "ip link set veth1 up",
                                     "ip link set br0 up",
                                     "ip route add default via 10.0.0.2 metric 50",
                                     "ip route add 10.77.0.0/16 dev br0 metric 33",
                                     wait_until_running("veth0"),
                                     wait_until_running("br0")},
                                    listed);
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const Listing nics = decode(run.output);
  ASSERT_TRUE(nics.count("veth0") && nics.count("veth1") && nics.count("br0") && nics.count("mac0") &&
              nics.count("tun0") && nics.count("vx0") && nics.count("lo"));

  EXPECT_EQ(nics.at("lo").kind, "loopback");
  EXPECT_EQ(nics.at("veth0").kind, "veth");
  EXPECT_EQ(nics.at("br0").kind, "bridge");
  EXPECT_TRUE(!nics.count("veth0.7") || nics.at("veth0.7").kind == "vlan");
  EXPECT_EQ(nics.at("tun0").kind, "tun");
  EXPECT_EQ(nics.at("mac0").kind, "virtual");
  EXPECT_EQ(nics.at("vx0").kind, "tun");
  EXPECT_EQ(nics.at("veth1").master, "br0");
  EXPECT_EQ(nics.at("veth0").master, "");
  EXPECT_EQ(nics.at("veth0").mtu, 9000);
  EXPECT_EQ(nics.at("veth0").speed_mbps, 0);

  EXPECT_TRUE(nics.at("veth0").up && nics.at("veth0").running);
  EXPECT_TRUE(nics.at("br0").up && nics.at("br0").running);
  EXPECT_FALSE(nics.at("mac0").up);
  EXPECT_FALSE(nics.at("tun0").up);

  EXPECT_THAT(texts(nics.at("veth0")),
              ::testing::IsSupersetOf({"10.0.0.1/24", "10.0.0.9/24", "fd00::1/64", "fd00::2/64"}));
  EXPECT_EQ(texts(nics.at("veth0")).front(), "10.0.0.1/24");
  EXPECT_FALSE(find(nics.at("veth0"), "10.0.0.9").temporary);  // IFA_F_SECONDARY is the same bit
  EXPECT_FALSE(find(nics.at("veth0"), "fd00::1").deprecated);
  EXPECT_TRUE(find(nics.at("veth0"), "fd00::2").deprecated);
  EXPECT_TRUE(find(nics.at("br0"), "169.254.7.7").link_local);
  EXPECT_THAT(texts(nics.at("tun0")), ::testing::Contains("10.5.0.1/32"));  // the local address, not the peer's
  for (const auto& address : nics.at("veth0").addresses) {
    EXPECT_EQ(address.link_local, address.text().rfind("fe80", 0) == 0) << address.text();
  }

  EXPECT_EQ(nics.at("veth0").route_metric, 0);  // its connected route
  EXPECT_EQ(nics.at("tun0").route_metric, -1);
}

TEST(Interfaces, TakeTheLowestMetricOfSeveralRoutes) {
  const auto run = in_own_namespace(
      {"ip link add d0 type veth peer name d1", "ip link set d0 up", "ip link set d1 up",
       "ip addr add 10.0.0.1/24 dev d0 noprefixroute", "ip addr add 10.1.0.1/24 dev d1 noprefixroute",
       "ip route add 10.0.0.0/24 dev d0 metric 100", "ip route add default via 10.0.0.9 dev d0 metric 600",
       "ip route add 10.1.0.0/24 dev d1 metric 300",
       "ip route add 10.9.0.0/16 metric 200 nexthop dev d1 weight 1 nexthop dev d0 weight 1"},
      listed);
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const Listing nics = decode(run.output);
  EXPECT_EQ(nics.at("d0").route_metric, 100);
  EXPECT_EQ(nics.at("d1").route_metric, 200);
}

TEST(Interfaces, TellAPortWithoutCarrier) {
  const auto run = in_own_namespace({"ip link add veth0 type veth peer name veth1", "ip link set veth0 up"}, listed);
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const Listing nics = decode(run.output);
  EXPECT_TRUE(nics.at("veth0").up);
  EXPECT_FALSE(nics.at("veth0").running);
}

// Uses no bridges: the kernel takes six seconds to remove hundreds of them with their namespace, and until then no
// process on the machine can list interfaces.
TEST(Interfaces, AreListedInFullWhenThereAreHundreds) {
  const auto run = in_own_namespace({"for i in $(seq 200); do echo \"link add d$i type veth peer name e$i\"; "
                                     "echo \"addr add 10.$((i / 200)).$((i % 200)).1/24 dev d$i\"; done | ip -batch -"},
                                    listed);
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const Listing nics = decode(run.output);
  EXPECT_EQ(nics.size(), 401u);
  EXPECT_EQ(nics.at("d200").addresses.size(), 1u);
}

}  // namespace
}  // namespace drun::netdetect::testing
