#include "check/link_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/check/link_tables.h"

namespace drun::check {
namespace {

using testing::FakeNetwork;
using ::testing::IsEmpty;

LinkVerdicts verdicts(const FakeNetwork& network) { return judge_links(network.link_hosts(), network.measure()); }

TEST(LinkVerdicts, NoneOnAHealthyCluster) {
  for (const int n : {1, 2, 3, 8}) {
    const LinkVerdicts found = verdicts(FakeNetwork(n));
    EXPECT_THAT(found.hosts, IsEmpty());
    EXPECT_THAT(found.pairs, IsEmpty());
    EXPECT_FALSE(found.shared_by_lossy_pairs);
  }
}

TEST(LinkVerdicts, SayInWhichDirectionAHostIsSlow) {
  FakeNetwork network(6);
  network[2].receives = 50e6;
  const LinkVerdicts found = verdicts(network);
  ASSERT_EQ(found.hosts.size(), 1u);
  const HostVerdict& verdict = found.hosts[0];
  EXPECT_EQ(verdict.host, 2);
  EXPECT_EQ(verdict.fault, LinkFault::kAsymmetric);
  EXPECT_TRUE(verdict.slow_in);
  EXPECT_FALSE(verdict.slow_out);
  EXPECT_TRUE(verdict.again);
  EXPECT_NEAR(typical_rate(verdict.in), 50e6, 5e6);
  EXPECT_NEAR(verdict.usual_rate, 941e6, 50e6);
  EXPECT_FALSE(found.controls.empty());
  EXPECT_THAT(found.pairs, IsEmpty());
}

TEST(LinkVerdicts, AHostThatIsOnlyFarHasNoFault) {
  FakeNetwork network(6);
  network[1].extra_us = 5000;
  const LinkVerdicts found = verdicts(network);
  ASSERT_EQ(found.hosts.size(), 1u);
  EXPECT_EQ(found.hosts[0].host, 1);
  EXPECT_EQ(found.hosts[0].fault, LinkFault::kNone);
  EXPECT_TRUE(found.hosts[0].far);
}

TEST(LinkVerdicts, TheLossOfASlowHostIsItsFault) {
  FakeNetwork network(6);
  network[4].loss = 0.05;  // which makes its rates a fifth
  const LinkVerdicts found = verdicts(network);
  ASSERT_EQ(found.hosts.size(), 1u);
  EXPECT_EQ(found.hosts[0].fault, LinkFault::kLoss);
  EXPECT_TRUE(found.hosts[0].lossy_out);
  EXPECT_TRUE(found.hosts[0].lossy_in);
  EXPECT_NEAR(loss_of(found.hosts[0].out), 0.05, 0.01);
}

TEST(LinkVerdicts, TheDirectionsOfALonePairAreComparedWithEachOther) {
  FakeNetwork network(2);
  network[0].sends = 50e6;
  const LinkVerdicts found = verdicts(network);
  ASSERT_EQ(found.pairs.size(), 1u);
  const PairVerdict& verdict = found.pairs[0];
  EXPECT_TRUE(verdict.alone);
  EXPECT_TRUE(verdict.compared_with_each_other);
  EXPECT_TRUE(verdict.slow_there);
  EXPECT_FALSE(verdict.slow_back);
  EXPECT_EQ(verdict.fault, LinkFault::kAsymmetric);
}

TEST(LinkVerdicts, APairBetweenGoodHostsIsNotAttributedToThem) {
  FakeNetwork network(6);
  network.special = [](int from, int to, netdetect::Rate& rate) {
    if (std::min(from, to) == 1 && std::max(from, to) == 3) rate.bits_per_second /= 20;
  };
  const LinkVerdicts found = verdicts(network);
  EXPECT_THAT(found.hosts, IsEmpty());
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.pairs[0].pair, netdetect::HostPair(1, 3));
  EXPECT_EQ(found.pairs[0].fault, LinkFault::kSlow);
}

}  // namespace
}  // namespace drun::check
