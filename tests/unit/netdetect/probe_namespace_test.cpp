// Probes in a network namespace of the test's own: filters, missing routes, several addresses.
#include <gtest/gtest.h>

#include "tests/unit/netdetect/own_namespace.h"
#include "tests/unit/netdetect/probing.h"

namespace drun::netdetect::testing {
namespace {

// Probes the addresses against a listener in the same namespace. Returns the encoded results.
struct ProbeAddresses {
  std::vector<std::string> addresses;
  std::chrono::milliseconds timeout{400};

  std::string operator()() const {
    Loop loop;
    auto listener = ProbeListener::start(loop.io().get_executor(), kToken);
    if (!listener) return "";
    std::vector<ProbeTarget> targets;
    for (const auto& address : addresses) {
      targets.push_back({static_cast<std::uint32_t>(targets.size()), address, (*listener)->port()});
    }
    ByteWriter out;
    encode(out, loop.probe(targets, timeout));
    loop.stop(**listener);
    return out.take();
  }
};

std::vector<ProbeResult> decode(const std::string& bytes) {
  ByteReader in(bytes);
  auto results = decode_results(in);
  EXPECT_TRUE(in.done());
  return results;
}

TEST(ProbeNamespace, TimesOutAtAFilterThatDrops) {
  const auto run = in_own_namespace(
      {"nft add table inet t", "nft 'add chain inet t i { type filter hook input priority 0; }'",
       "nft add rule inet t i ip daddr 127.0.0.66 tcp flags syn drop",
       "nft add rule inet t i ip daddr 127.0.0.77 reject with tcp reset",
       "nft add rule inet t i ip daddr 127.0.0.88 tcp flags syn reject with icmp type host-prohibited"},
      ProbeAddresses{{"127.0.0.66", "127.0.0.77", "127.0.0.1", "127.0.0.88"}});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const auto results = decode(run.output);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].outcome, ProbeOutcome::kTimedOut) << results[0].detail;
  EXPECT_EQ(results[1].outcome, ProbeOutcome::kRefused) << results[1].detail;
  EXPECT_EQ(results[2].outcome, ProbeOutcome::kReached) << results[2].detail;
  EXPECT_EQ(results[3].outcome, ProbeOutcome::kHostUnreachable) << "as firewalld rejects: " << results[3].detail;
}

TEST(ProbeNamespace, TellsWhatHasNoRoute) {
  const auto run = in_own_namespace({"ip route add unreachable 10.8.0.0/16", "ip route add prohibit 10.9.0.0/16"},
                                    ProbeAddresses{{"10.7.0.1", "10.8.0.1", "10.9.0.1", "fd00::1"}});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const auto results = decode(run.output);
  ASSERT_EQ(results.size(), 4u);
  for (const auto& result : results) {
    // An unreachable route has the error that a router or a firewall sends.
    const auto expected = result.id == 1 ? ProbeOutcome::kHostUnreachable : ProbeOutcome::kUnreachable;
    EXPECT_EQ(result.outcome, expected) << result.id << " " << result.detail;
    EXPECT_FALSE(result.detail.empty());
  }
}

TEST(ProbeNamespace, ReportsItsSourceAddress) {
  const auto run = in_own_namespace(
      {"ip addr add 10.3.0.5/32 dev lo", "ip addr add fd03::5/128 dev lo nodad", wait_until_local("fd03::5")},
      ProbeAddresses{{"10.3.0.5", "fd03::5"}});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const auto results = decode(run.output);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].source, "10.3.0.5") << results[0].detail;
  EXPECT_EQ(results[1].source, "fd03::5") << results[1].detail;
}

TEST(ProbeNamespace, WorksWhereIpv6IsSwitchedOff) {
  const auto run =
      in_own_namespace({"echo 1 | tee /proc/sys/net/ipv6/conf/all/disable_ipv6"}, ProbeAddresses{{"127.0.0.1", "::1"}});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const auto results = decode(run.output);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].outcome, ProbeOutcome::kReached) << results[0].detail;
  EXPECT_EQ(results[1].outcome, ProbeOutcome::kUnreachable) << results[1].detail;
}

}  // namespace
}  // namespace drun::netdetect::testing
