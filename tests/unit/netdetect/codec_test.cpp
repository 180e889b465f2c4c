#include <gtest/gtest.h>

#include <random>

#include "netdetect/probe_target.h"
#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

std::vector<Interface> some_interfaces() {
  Interface full = nic("bond0", {"10.0.0.1/24", "fd00::1/64", "fe80::1/64"}, 200000);
  full.index = 7;
  full.mtu = 9000;
  full.kind = "bond";
  full.master = "br0";
  full.rdma = true;
  full.route_metric = 100;
  full.addresses[1].temporary = true;
  full.addresses[2].deprecated = true;
  return {loopback(), full, Interface{}};
}

std::string encode_interfaces(const std::vector<Interface>& list) {
  ByteWriter out;
  encode(out, list);
  return out.take();
}

TEST(Codec, KeepsInterfaces) {
  const auto list = some_interfaces();
  const std::string bytes = encode_interfaces(list);
  ByteReader in(bytes);
  const auto back = decode_interfaces(in);
  EXPECT_TRUE(in.done());
  ASSERT_EQ(back.size(), list.size());
  const Interface& nic = back[1];
  EXPECT_EQ(nic.name, "bond0");
  EXPECT_EQ(nic.index, 7);
  EXPECT_EQ(nic.mtu, 9000);
  EXPECT_EQ(nic.speed_mbps, 200000);
  EXPECT_EQ(nic.kind, "bond");
  EXPECT_EQ(nic.master, "br0");
  EXPECT_EQ(nic.route_metric, 100);
  EXPECT_TRUE(nic.up && nic.running && nic.rdma && !nic.loopback);
  EXPECT_TRUE(back[0].loopback);
  EXPECT_EQ(back[2].route_metric, -1);
  ASSERT_EQ(nic.addresses.size(), 3u);
  EXPECT_EQ(nic.addresses[0].text(), "10.0.0.1");
  EXPECT_EQ(nic.addresses[1].text(), "fd00::1");
  EXPECT_EQ(nic.addresses[1].family, 6);
  EXPECT_EQ(nic.addresses[1].prefix_length, 64);
  EXPECT_TRUE(nic.addresses[1].temporary && !nic.addresses[1].link_local && !nic.addresses[1].deprecated);
  EXPECT_TRUE(nic.addresses[2].link_local && nic.addresses[2].deprecated);
}

TEST(Codec, KeepsTargetsAndResults) {
  ByteWriter out;
  encode(out, std::vector<ProbeTarget>{{1, "10.0.0.1", 65535}, {4000000000u, "fd00::1", 1}});
  ProbeResult result;
  result.id = 9;
  result.outcome = ProbeOutcome::kWrongPeer;
  result.source = "10.0.0.2";
  result.micros = 123456;
  result.detail = "connected, but no proof";
  encode(out, std::vector<ProbeResult>{result});
  ByteReader in(out.bytes());
  const auto targets = decode_targets(in);
  const auto results = decode_results(in);
  EXPECT_TRUE(in.done());
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[1].id, 4000000000u);
  EXPECT_EQ(targets[1].address, "fd00::1");
  EXPECT_EQ(targets[0].port, 65535);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, ProbeOutcome::kWrongPeer);
  EXPECT_EQ(results[0].source, "10.0.0.2");
  EXPECT_EQ(results[0].micros, 123456u);
  EXPECT_EQ(results[0].detail, "connected, but no proof");
}

TEST(Codec, FailsOnEveryTruncation) {
  const std::string bytes = encode_interfaces(some_interfaces());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    ByteReader in(std::string_view(bytes).substr(0, n));
    decode_interfaces(in);
    EXPECT_FALSE(in.ok()) << n;
  }
}

TEST(Codec, RefusesACountThatCannotFit) {
  ByteWriter out;
  out.u32(0xffffffffu);
  for (int which = 0; which < 3; ++which) {
    ByteReader in(out.bytes());
    const bool empty = which == 0   ? decode_interfaces(in).empty()
                       : which == 1 ? decode_targets(in).empty()
                                    : decode_results(in).empty();
    EXPECT_TRUE(empty);
    EXPECT_FALSE(in.ok());
  }
}

TEST(Codec, SurvivesDamagedInput) {
  std::mt19937 random(20240229);
  const std::string good = encode_interfaces(some_interfaces());
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    const int n_changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < n_changes; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 2) bytes.resize(random() % bytes.size());
    ByteReader a(bytes);
    for (const auto& nic : decode_interfaces(a)) {
      for (const auto& address : nic.addresses) {
        EXPECT_LE(address.text().size(), 46u);
        EXPECT_EQ(network_of(address).bytes.size(), address.bytes.size());
      }
    }
    ByteReader b(bytes);
    decode_targets(b);
    ByteReader c(bytes);
    for (const auto& r : decode_results(c)) EXPECT_LE(r.outcome, ProbeOutcome::kError);
  }
}

}  // namespace
}  // namespace drun::netdetect::testing
