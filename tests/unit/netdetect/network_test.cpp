#include "netdetect/network.h"

#include <gtest/gtest.h>

#include "netdetect/wording.h"
#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

TEST(Address, ParsesBothFamiliesAndNothingElse) {
  EXPECT_EQ(parse_address("10.0.0.2").text(), "10.0.0.2");
  EXPECT_EQ(parse_address("fd00:0::2").text(), "fd00::2");
  EXPECT_EQ(parse_address("fd00::2").family, 6);
  EXPECT_TRUE(parse_address("169.254.1.1").link_local);
  EXPECT_TRUE(parse_address("febf::1").link_local);
  EXPECT_FALSE(parse_address("fec0::1").link_local);
  for (const std::string bad :
       {"", "host1", "10.0.0", "10.0.0.256", "010.0.0.1", "fe80::1%eth0", "[::1]", " 10.0.0.1", "1"}) {
    EXPECT_TRUE(parse_address(bad).bytes.empty()) << bad;
    EXPECT_EQ(parse_address(bad).text(), "");
  }
  EXPECT_TRUE(parse_address(std::string("10.0.0.1\0x", 10)).bytes.empty());
}

TEST(Network, ContainsByPrefix) {
  const auto contains = [](const std::string& network, const std::string& a) {
    return in_network(*parse_network(network), address(a));
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/9", "10.255.0.1"));
  EXPECT_TRUE(contains("10.128.0.0/9", "10.255.0.1"));
  EXPECT_TRUE(contains("0.0.0.0/0", "1.2.3.4"));
  EXPECT_FALSE(contains("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(contains("::/0", "fd00::1"));
  EXPECT_TRUE(contains("10.0.0.1", "10.0.0.1"));
  EXPECT_FALSE(contains("10.0.0.1/32", "10.0.0.2"));
  EXPECT_TRUE(contains("fd00:1::/31", "fd00::1"));
  EXPECT_FALSE(contains("fd00:1::/32", "fd00::1"));
}

TEST(Network, IsWrittenMasked) {
  EXPECT_EQ(network_text(address("10.1.2.3/23")), "10.1.2.0/23");
  EXPECT_EQ(network_text(address("fd00::1:2/64")), "fd00::/64");
  EXPECT_EQ(network_text(address("10.1.2.3/32")), "10.1.2.3/32");
}

TEST(Wording, CutsLongLists) {
  EXPECT_EQ(list_some({}, 2), "none");
  EXPECT_EQ(list_some({"a"}, 2), "a");
  EXPECT_EQ(list_some({"a", "b", "c"}, 2), "a, b and c");
  EXPECT_EQ(list_some({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

TEST(Network, ANameOfLoopbackAddressesAlone) {
  EXPECT_EQ(only_loopback({"127.0.1.1"}), "127.0.1.1");
  EXPECT_EQ(only_loopback({"::1", "127.0.0.1"}), "::1");
  EXPECT_EQ(only_loopback({"127.0.1.1", "10.0.0.7"}), "");
  EXPECT_EQ(only_loopback({"fe80::1", "::1"}), "");
  EXPECT_EQ(only_loopback({}), "");
}

}  // namespace
}  // namespace drun::netdetect::testing
