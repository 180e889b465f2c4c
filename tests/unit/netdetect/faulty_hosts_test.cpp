#include "netdetect/faulty_hosts.h"

#include <gtest/gtest.h>

namespace drun::netdetect {
namespace {

Candidates candidates_of(const std::vector<int>& hosts) {
  Candidates candidates;
  for (const int host : hosts) {
    Candidate one;
    one.host = host;
    candidates.tried.push_back(one);
  }
  return candidates;
}

TEST(FaultyHosts, NobodyWhereAllPairsAreConnected) {
  EXPECT_TRUE(find_faulty_hosts(3, candidates_of({0, 1, 2}), {}).empty());
}

TEST(FaultyHosts, TheHostThatIsInEveryPair) {
  EXPECT_EQ(find_faulty_hosts(4, candidates_of({0, 1, 2, 3}), {{0, 2}, {1, 2}, {2, 3}}), std::vector<int>{2});
}

TEST(FaultyHosts, HostsWithoutAnAddressComeFirst) {
  EXPECT_EQ(find_faulty_hosts(5, candidates_of({0, 1, 2, 4}), {{0, 1}, {0, 2}, {2, 3}}), (std::vector<int>{3, 0}));
}

// The search continues at exactly half of the hosts and stops above half.
TEST(FaultyHosts, EndsWithMoreThanHalfOfTheHosts) {
  EXPECT_EQ(find_faulty_hosts(4, candidates_of({3}), {}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(find_faulty_hosts(5, candidates_of({4}), {}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(find_faulty_hosts(4, candidates_of({2, 3}), {{2, 3}}), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace drun::netdetect
