#include "check/vote.h"

#include <gtest/gtest.h>

namespace drun::check {
namespace {

TEST(Vote, TheMajorityComesFirst) {
  const Vote vote = count_votes({{0, "b"}, {1, "a"}, {2, "a"}, {3, "c"}});
  EXPECT_FALSE(vote.unanimous());
  EXPECT_FALSE(vote.tie);
  ASSERT_EQ(vote.groups.size(), 3u);
  EXPECT_EQ(vote.groups[0].value, "a");
  EXPECT_EQ(vote.groups[0].hosts, (std::vector<int>{1, 2}));
  EXPECT_EQ(vote.groups[1].value, "b");
}

TEST(Vote, OfEqualGroupsNoneIsTheMajority) {
  EXPECT_TRUE(count_votes({{0, "a"}, {1, "b"}}).tie);
  EXPECT_TRUE(count_votes({{0, "a"}, {1, "b"}, {2, "b"}, {3, "a"}, {4, "c"}}).tie);
  EXPECT_FALSE(count_votes({{0, "a"}, {1, "b"}, {2, "b"}}).tie);
}

TEST(Vote, AgreementAndNoVotes) {
  EXPECT_TRUE(count_votes({}).unanimous());
  EXPECT_TRUE(count_votes({{3, "a"}, {5, "a"}}).unanimous());
}

}  // namespace
}  // namespace drun::check
