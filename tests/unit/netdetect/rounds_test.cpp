#include "netdetect/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace drun::netdetect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns the pairs of `rounds`. Fails if a host appears twice in a round, or a pair twice at all.
std::set<HostPair> pairs_of(const std::vector<Round>& rounds) {
  std::set<HostPair> all;
  for (const auto& round : rounds) {
    std::set<int> hosts;
    EXPECT_FALSE(round.empty());
    for (const auto& [a, b] : round) {
      EXPECT_LT(a, b);
      EXPECT_TRUE(hosts.insert(a).second) << a << " is in two pairs";
      EXPECT_TRUE(hosts.insert(b).second) << b << " is in two pairs";
      EXPECT_TRUE(all.emplace(a, b).second) << a << " " << b << " twice";
    }
  }
  return all;
}

TEST(Rounds, ATournamentHasEveryPairOnceInTheFewestRounds) {
  for (int n = 0; n <= 33; ++n) {
    SCOPED_TRACE(n);
    const auto rounds = tournament(n);
    EXPECT_EQ(pairs_of(rounds).size(), static_cast<std::size_t>(n * (n - 1) / 2));
    const int fewest = n < 2 ? 0 : n % 2 == 0 ? n - 1 : n;
    EXPECT_EQ(static_cast<int>(rounds.size()), fewest);
  }
}

TEST(Rounds, OfThreeHosts) {
  EXPECT_THAT(tournament(3),
              ElementsAre(ElementsAre(HostPair(0, 1)), ElementsAre(HostPair(1, 2)), ElementsAre(HostPair(0, 2))));
}

TEST(Rounds, HaveThePairsThatAreWantedAndNoOthers) {
  const std::vector<HostPair> wanted = {{0, 1}, {3, 2}, {1, 2}};
  const auto rounds = rounds_of(4, wanted);
  EXPECT_EQ(pairs_of(rounds), (std::set<HostPair>{{0, 1}, {2, 3}, {1, 2}}));
}

TEST(Rounds, LeaveOutWhatIsNoPair) {
  const std::vector<HostPair> wanted = {{0, 0}, {-1, 2}, {1, 4}, {2, 1}, {1, 2}};
  EXPECT_EQ(pairs_of(rounds_of(4, wanted)), (std::set<HostPair>{{1, 2}}));
  EXPECT_THAT(rounds_of(1, wanted), IsEmpty());
  EXPECT_THAT(rounds_of(4, {}), IsEmpty());
}

TEST(Rounds, AreNotManyBecauseAllHostsTryOne) {
  constexpr int kHosts = 100, kMost = 6;
  std::vector<HostPair> pairs;
  for (int a = 1; a < kHosts; ++a) {
    pairs.emplace_back(0, a);
    if (a + 1 < kHosts) pairs.emplace_back(a, a + 1);
    if (a + 7 < kHosts) pairs.emplace_back(a, a + 7);
  }
  EXPECT_EQ(rounds_of(kHosts, pairs).size(), static_cast<std::size_t>(kHosts) - 1);
  const auto limited = limit_pairs(kHosts, pairs, kMost);
  std::vector<int> count(kHosts, 0);
  for (const auto& [a, b] : limited) {
    ++count[static_cast<std::size_t>(a)];
    ++count[static_cast<std::size_t>(b)];
  }
  EXPECT_EQ(count[0], kMost);
  EXPECT_EQ(*std::max_element(count.begin(), count.end()), kMost);
  const std::set<HostPair> kept(limited.begin(), limited.end());
  EXPECT_EQ(kept.count({0, 1}) + kept.count({0, kHosts - 1}), 2u) << "hosts that follow one another";
  for (const auto& pair : pairs) EXPECT_TRUE(pair.first == 0 || kept.count(pair) == 1) << pair.first;
  // Hosts that only one can reach are measured with it.
  const std::vector<HostPair> star = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}};
  EXPECT_EQ(limit_pairs(6, star, 2).size(), 5u);
}

TEST(Rounds, OfManyHostsAreFew) {
  // A ring and two more partners for each host, similar to the plan of the probes.
  constexpr int kHosts = 200;
  std::vector<HostPair> wanted;
  std::vector<int> degree(kHosts, 0);
  const auto add = [&](int a, int b) { wanted.emplace_back(std::min(a, b), std::max(a, b)); };
  for (int i = 0; i < kHosts; ++i) {
    add(i, (i + 1) % kHosts);
    add(i, (i + 7) % kHosts);
    add(i, (i + 61) % kHosts);
  }
  const std::set<HostPair> distinct(wanted.begin(), wanted.end());
  for (const auto& [a, b] : distinct) {
    ++degree[static_cast<std::size_t>(a)];
    ++degree[static_cast<std::size_t>(b)];
  }
  const auto rounds = rounds_of(kHosts, wanted);
  EXPECT_EQ(pairs_of(rounds), distinct);
  EXPECT_LE(static_cast<int>(rounds.size()), 2 * *std::max_element(degree.begin(), degree.end()) - 1);
}

TEST(Rounds, ReachInOneDirectionIsEnoughForAPair) {
  EXPECT_THAT(reachable_pairs({{1, 1, 0}, {0, 1, -1}, {1, 0, 1}}), ElementsAre(HostPair(0, 1), HostPair(0, 2)));
  EXPECT_THAT(reachable_pairs({}), IsEmpty());
}

}  // namespace
}  // namespace drun::netdetect
