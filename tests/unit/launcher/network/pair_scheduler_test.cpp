#include "launcher/network/pair_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace drun::launcher {
namespace {

using netdetect::HostPair;
using netdetect::Round;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<Round> kFour = {{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}};

TEST(PairScheduler, BeginsAPairOnceBothOfItsHostsAreFree) {
  PairScheduler scheduler(kFour, {});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 1), HostPair(2, 3)));
  EXPECT_THAT(scheduler.begin({}), IsEmpty());
  scheduler.end({0, 1});
  EXPECT_THAT(scheduler.begin({}), IsEmpty());
  scheduler.end({2, 3});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 2), HostPair(1, 3)));
  EXPECT_EQ(scheduler.n_waiting(), 2u);
  EXPECT_EQ(scheduler.n_pairs(), 6u);
}

TEST(PairScheduler, DoesNotWaitForTheRestOfARound) {
  PairScheduler scheduler({{{0, 1}, {2, 3}}, {{0, 4}, {1, 5}}}, {});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 1), HostPair(2, 3)));
  scheduler.end({0, 1});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 4), HostPair(1, 5)));
}

TEST(PairScheduler, MeasuresLatePairsAfterTheOthersOfTheirHosts) {
  PairScheduler scheduler(kFour, {{0, 1}});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(2, 3)));  // 0 and 1 have other pairs
  scheduler.end({2, 3});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 2), HostPair(1, 3)));
  scheduler.end({0, 2});
  scheduler.end({1, 3});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 3), HostPair(1, 2)));
  EXPECT_EQ(scheduler.n_waiting(), 1u);
  scheduler.end({0, 3});
  EXPECT_THAT(scheduler.begin({}), IsEmpty());
  scheduler.end({1, 2});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 1)));
  EXPECT_EQ(scheduler.n_waiting(), 0u);
}

TEST(PairScheduler, SkipsWaitingPairsAndNamesTheirHost) {
  PairScheduler scheduler(kFour, {{1, 2}});
  EXPECT_THAT(scheduler.begin({}), ElementsAre(HostPair(0, 1), HostPair(2, 3)));
  EXPECT_THAT(scheduler.begin({3}), IsEmpty());
  EXPECT_EQ(scheduler.n_waiting(), 2u);
  EXPECT_THAT(scheduler.skipped_hosts(), ElementsAre(3));
  scheduler.end({0, 1});
  scheduler.end({2, 3});
  EXPECT_THAT(scheduler.begin({3}), ElementsAre(HostPair(0, 2)));
  scheduler.end({0, 2});
  EXPECT_THAT(scheduler.begin({3}), ElementsAre(HostPair(1, 2)));
  EXPECT_EQ(scheduler.n_waiting(), 0u);
}

TEST(PairScheduler, NamesNoHostWithoutASkippedPair) {
  PairScheduler scheduler({{{0, 1}}}, {});
  EXPECT_THAT(scheduler.begin({5}), ElementsAre(HostPair(0, 1)));
  EXPECT_THAT(scheduler.skipped_hosts(), IsEmpty());
}

TEST(PairScheduler, BeginsEachPairOnceWhateverEndsFirst) {
  PairScheduler scheduler(netdetect::tournament(7), {{0, 3}, {2, 6}});
  std::vector<HostPair> running;
  std::map<HostPair, int> n_begun;
  for (;;) {
    for (const HostPair& pair : scheduler.begin({})) {
      running.push_back(pair);
      ++n_begun[pair];
    }
    std::set<int> busy;
    for (const auto& [a, b] : running) busy.insert({a, b});
    ASSERT_EQ(busy.size(), 2 * running.size());  // no host is in two
    if (running.empty()) break;
    scheduler.end(running.back());  // the latest ends first
    running.pop_back();
  }
  EXPECT_EQ(scheduler.n_waiting(), 0u);
  EXPECT_EQ(n_begun.size(), 21u);
  for (const auto& [pair, n] : n_begun) EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace drun::launcher
