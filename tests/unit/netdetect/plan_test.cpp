#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/netdetect/hosts.h"

namespace drun::netdetect::testing {
namespace {

std::vector<HostInterfaces> make_hosts(int n) {
  std::vector<HostInterfaces> hosts;
  for (int i = 0; i < n; ++i) {
    const std::string tail = std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + "/16";
    hosts.push_back(host("h" + std::to_string(i), {nic("eth0", {"10.0." + tail}), nic("eth1", {"10.1." + tail})}));
  }
  return hosts;
}

// The hosts that try each host. Checks that each of them tries all of its addresses.
std::map<int, std::set<int>> triers(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                    std::uint64_t seed) {
  std::map<int, std::map<int, int>> n_addresses;
  for (const auto& a : plan_attempts(static_cast<int>(hosts.size()), candidates, seed)) {
    const int to = candidates.tried[static_cast<std::size_t>(a.candidate)].host;
    EXPECT_NE(a.from, to);
    ++n_addresses[to][a.from];
  }
  std::map<int, std::set<int>> out;
  for (const auto& [to, counts] : n_addresses) {
    for (const auto& [from, n] : counts) {
      EXPECT_EQ(n, 2);
      out[to].insert(from);
    }
  }
  return out;
}

TEST(Plan, TriesAllPairsUpTo32Hosts) {
  for (const int n : {2, 3, 16, 32}) {
    const auto hosts = make_hosts(n);
    const auto candidates = find_candidates(hosts, {});
    for (const auto& [to, from] : triers(hosts, *candidates, 1)) EXPECT_EQ(static_cast<int>(from.size()), n - 1);
    EXPECT_EQ(plan_attempts(n, *candidates, 1).size(), static_cast<std::size_t>(n * (n - 1) * 2));
  }
}

TEST(Plan, CoversEveryHostBeyondThat) {
  for (const int n : {33, 64, 256, 257, 1000}) {
    const auto hosts = make_hosts(n);
    const auto candidates = find_candidates(hosts, {});
    for (const std::uint64_t seed : {1u, 2u, 77u}) {
      const auto by_host = triers(hosts, *candidates, seed);
      ASSERT_EQ(static_cast<int>(by_host.size()), n);
      std::map<int, int> load;
      for (const auto& [to, from] : by_host) {
        EXPECT_EQ(from.size(), n > 256 ? 2u : 4u);
        EXPECT_TRUE(from.count((to + n - 1) % n)) << "no ring at " << to;
        for (const int f : from) ++load[f];
      }
      for (const auto& [from, count] : load) EXPECT_LE(count, 5) << from;  // no host does the work of many
      EXPECT_EQ(static_cast<int>(load.size()), n);
    }
  }
}

TEST(Plan, IsTheSameForTheSameSeed) {
  const auto hosts = make_hosts(64);
  const auto candidates = find_candidates(hosts, {});
  EXPECT_EQ(triers(hosts, *candidates, 5), triers(hosts, *candidates, 5));
  EXPECT_NE(triers(hosts, *candidates, 5), triers(hosts, *candidates, 6));
}

TEST(Plan, SkipsPairsOfOneNamespace) {
  auto hosts = make_hosts(64);
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].net_namespace = "machine " + std::to_string(i / 8);
  const auto candidates = find_candidates(hosts, {});
  const auto by_host = triers(hosts, *candidates, 1);
  ASSERT_EQ(by_host.size(), 64u);
  for (const auto& [to, from] : by_host) {
    EXPECT_GE(from.size(), 4u);
    for (const int f : from) EXPECT_NE(f / 8, to / 8);
  }
}

TEST(Plan, TakesWhoThereIsWhenFewAreElsewhere) {
  auto hosts = make_hosts(40);
  for (std::size_t i = 0; i < 38; ++i) hosts[i].net_namespace = "big";
  const auto candidates = find_candidates(hosts, {});
  const auto by_host = triers(hosts, *candidates, 1);
  EXPECT_EQ(by_host.at(0), (std::set<int>{38, 39}));
  EXPECT_EQ(by_host.at(39).size(), 4u);
}

TEST(Plan, IsEmptyWithoutCandidatesOrPeers) {
  EXPECT_TRUE(plan_attempts(0, {}, 1).empty());
  EXPECT_TRUE(plan_attempts(64, {}, 1).empty());
  const auto hosts = make_hosts(1);
  EXPECT_TRUE(plan_attempts(1, *find_candidates(hosts, {}), 1).empty());
}

}  // namespace
}  // namespace drun::netdetect::testing
