#include "launcher/network/network_text.h"

#include <gtest/gtest.h>

#include "tests/unit/netdetect/hosts.h"

namespace drun::launcher {
namespace {

netdetect::HostChoice chosen(const std::string& interface, const std::string& address) {
  netdetect::HostChoice out;
  out.interface = interface;
  out.address = netdetect::testing::address(address);
  return out;
}

// The text for hosts h0, h1, ... with these interfaces, all in one network.
std::string in_short(const std::vector<std::string>& interfaces) {
  std::vector<std::string> names;
  std::vector<netdetect::HostChoice> hosts;
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    names.push_back("h" + std::to_string(i));
    hosts.push_back(chosen(interfaces[i], "10.0.0." + std::to_string(i + 1) + "/24"));
  }
  return network_in_short(names, hosts);
}

TEST(NetworkInShort, NamesInterfacesAndHosts) {
  EXPECT_EQ(in_short({"eth0", "eth0"}), "network 10.0.0.0/24: eth0 on h0 and h1");
  EXPECT_EQ(in_short({"eth0", "eth1"}), "network 10.0.0.0/24: eth0 on h0, eth1 on h1");
  EXPECT_EQ(in_short({"eth0", "eth1", "eth0", "eth0"}), "network 10.0.0.0/24: eth0 on h0, h2 and h3, eth1 on h1");
}

TEST(NetworkInShort, CountsWhatWouldBeLong) {
  EXPECT_EQ(in_short(std::vector<std::string>(64, "eth0")), "network 10.0.0.0/24: eth0 on all 64 hosts");
  EXPECT_EQ(in_short({"a", "a", "a", "a", "b"}), "network 10.0.0.0/24: a on 4 hosts, b on h4");
  EXPECT_EQ(in_short({"a", "b", "c", "d", "e", "e"}),
            "network 10.0.0.0/24: a on h0, b on h1, c on h2, 2 others on 3 hosts");
}

TEST(NetworkInShort, SeveralNetworksAreCounted) {
  EXPECT_EQ(network_in_short({"a", "b"}, {chosen("eth0", "10.0.0.1/24"), chosen("eth0", "10.0.1.1/24")}),
            "2 networks: eth0 on a and b");
}

TEST(NetworkInShort, SaysNothingWhereThereIsNoNetwork) {
  EXPECT_EQ(network_in_short({}, {}), "");
  EXPECT_EQ(network_in_short({"a"}, {chosen("eth0", "10.0.0.1/24")}), "");
  EXPECT_EQ(network_in_short({"a", "b"}, {chosen("lo", "127.0.0.1/8"), chosen("lo", "127.0.0.1/8")}), "");
  EXPECT_EQ(network_in_short({"a", "b"}, {chosen("eth0", "10.0.0.1/24"), chosen("eth0", "10.0.0.1/24")}), "");
}

}  // namespace
}  // namespace drun::launcher
