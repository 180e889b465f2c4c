#include "check/link_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "netdetect/link_stats.h"
#include "tests/unit/check/link_tables.h"

namespace drun::check {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeNetwork;
using ::testing::HasSubstr;
using testing::heads;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(LinkFindings, NoneOnAHealthyCluster) {
  for (const int n : {1, 2, 3, 4, 5, 8, 16}) {
    const FakeNetwork network(n);
    EXPECT_THAT(heads(network.findings()), IsEmpty()) << n;
    EXPECT_THAT(network.measure().second_pass, IsEmpty()) << n;
  }
}

// Sixteen containers on a machine with two cores: rates and round trips differ by a factor of three by chance.
TEST(LinkFindings, NoneWhereEverythingScatters) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    for (const int n : {2, 3, 4, 8, 16}) {
      FakeNetwork network(n);
      network.kind = "veth";
      network.seed = seed;
      network.scatter = 3;
      for (auto& host : network.hosts) host.sends = host.receives = 20e9;
      EXPECT_THAT(heads(network.findings()), IsEmpty()) << "seed " << seed << ", hosts " << n;
    }
  }
}

TEST(LinkFindings, FindsASlowHostWhereEverythingScatters) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    for (const int n : {3, 4, 8, 16}) {
      FakeNetwork network(n);
      network.seed = seed;
      network.scatter = 3;
      for (auto& host : network.hosts) host.sends = host.receives = 20e9;
      network[n - 1].sends = network[n - 1].receives = 200e6;
      const auto findings = network.findings();
      ASSERT_EQ(findings.size(), 1u) << "seed " << seed << ", hosts " << n << ::testing::PrintToString(heads(findings));
      EXPECT_THAT(findings[0].hosts, ElementsAre(n - 1));
    }
  }
}

TEST(LinkFindings, NamesTheSlowHostAndNoneOfItsPeers) {
  for (const int n : {3, 4, 5, 8, 16}) {
    for (const int faulty : {0, n / 2, n - 1}) {
      FakeNetwork network(n);
      network[faulty].sends = network[faulty].receives = 9.4e6;
      const auto findings = network.findings();
      ASSERT_EQ(findings.size(), 1u) << n << " " << faulty;
      EXPECT_EQ(findings[0].code, "link-slow");
      EXPECT_EQ(findings[0].severity, Severity::kWarning);
      EXPECT_THAT(findings[0].hosts, ElementsAre(faulty));
      EXPECT_THAT(findings[0].text, HasSubstr("others move 96"));
      EXPECT_THAT(findings[0].text, HasSubstr("negotiated at 10 Mb/s"));
      EXPECT_EQ(findings[0].command, "ethtool eth" + std::to_string(faulty) + "  # on h" + std::to_string(faulty));
    }
  }
}

TEST(LinkFindings, NamesEachOfSeveralSlowHosts) {
  FakeNetwork network(4);  // five of six links are slow
  network[1].sends = network[1].receives = 9.4e6;
  network[2].sends = network[2].receives = 94e6;
  EXPECT_THAT(heads(network.findings()), UnorderedElementsAre("link-slow h1 eth1", "link-slow h2 eth2"));
}

TEST(LinkFindings, ALinkOfHalfTheSpeedIsSlowWhereLinksAreEven) {
  FakeNetwork network(6);
  network[3].sends = network[3].receives = 471e6;
  EXPECT_THAT(heads(network.findings()), ElementsAre("link-slow h3 eth3"));
}

TEST(LinkFindings, TellsOneDirection) {
  for (const int n : {3, 8}) {
    FakeNetwork out(n), in(n);
    out[1].sends = 20e6;
    in[1].receives = 20e6;
    const auto sends = out.findings(), receives = in.findings();
    EXPECT_THAT(heads(sends), ElementsAre("link-asymmetric h1 eth1"));
    EXPECT_THAT(sends[0].text, HasSubstr("sends 20.4 Mb/s but receives 960 Mb/s"));
    EXPECT_THAT(heads(receives), ElementsAre("link-asymmetric h1 eth1"));
    EXPECT_THAT(receives[0].text, HasSubstr("receives 20.4 Mb/s but sends 960 Mb/s"));
  }
}

TEST(LinkFindings, NamesASinglePathBetweenTwoGoodHosts) {
  for (const int n : {3, 4, 8}) {
    FakeNetwork network(n);
    network.special = [](int from, int to, netdetect::Rate& rate) {
      if (std::minmax(from, to) == std::minmax(1, 2)) rate.bits_per_second /= 20;
    };
    const auto findings = network.findings();
    EXPECT_THAT(heads(findings), ElementsAre("link-slow h1 to h2")) << n;
    EXPECT_THAT(findings[0].hosts, ElementsAre(1, 2));
    EXPECT_THAT(findings[0].text, HasSubstr("both are fast with others"));
  }
}

TEST(LinkFindings, ASinglePathInOneDirection) {
  FakeNetwork network(5);
  network.special = [](int from, int to, netdetect::Rate& rate) {
    if (from == 3 && to == 1) rate.bits_per_second /= 20;
  };
  EXPECT_THAT(heads(network.findings()), ElementsAre("link-asymmetric h1 to h3"));
}

TEST(LinkFindings, NamesAHostThatLosesFrames) {
  for (const int n : {3, 4, 8, 16}) {
    FakeNetwork network(n);
    network[1].loss = 0.03;
    const auto findings = network.findings();
    EXPECT_THAT(heads(findings), ElementsAre("link-loss h1 eth1")) << n;
    EXPECT_THAT(findings[0].text, HasSubstr("3 % of what it sends and 3 % of what it receives"));
    EXPECT_THAT(findings[0].command, HasSubstr("ip -s link show eth1"));
  }
}

TEST(LinkFindings, FindsASlowAndALossyHostTogether) {
  FakeNetwork network(4);  // one of six links is good
  network[1].sends = network[1].receives = 9.4e6;
  network[2].loss = 0.03;
  EXPECT_THAT(heads(network.findings()), UnorderedElementsAre("link-slow h1 eth1", "link-loss h2 eth2"));
}

// Transfers are short, so the losses of a direction vary by chance.
TEST(LinkFindings, PairsThatLoseAndShareAHostAreThatHosts) {
  FakeNetwork network(7);
  network.special = [](int from, int to, netdetect::Rate& rate) {
    const bool loses = (from == 0 && to == 5) || (from == 2 && to == 5) || (from == 5 && to == 4);
    if (loses) rate.n_retransmits = rate.n_segments * 3 / 100;
  };
  const auto findings = network.findings();
  ASSERT_THAT(heads(findings), ElementsAre("link-loss h5 eth5"));
  EXPECT_EQ(findings[0].hosts, std::vector<int>{5});
  EXPECT_THAT(findings[0].text, HasSubstr("is lost and sent again"));
}

TEST(LinkFindings, TwoPairsThatLoseOrThreeWithoutAHostInCommonStayPairs) {
  FakeNetwork network(7);
  std::set<std::pair<int, int>> lossy{{0, 5}, {2, 5}};
  network.special = [&](int from, int to, netdetect::Rate& rate) {
    if (lossy.contains({from, to})) rate.n_retransmits = rate.n_segments * 3 / 100;
  };
  EXPECT_THAT(heads(network.findings()), UnorderedElementsAre("link-loss h0 to h5", "link-loss h2 to h5"));
  lossy.insert({1, 3});
  EXPECT_THAT(heads(network.findings()),
              UnorderedElementsAre("link-loss h0 to h5", "link-loss h2 to h5", "link-loss h1 to h3"));
}

// A lost frame of 64 KB (veth) causes 45 retransmitted segments, so a connection is faster than its loss would allow
// with frames of one segment. Only the second pass can tell if such a direction loses frames.
struct FastInSpiteOfLoss {
  FakeNetwork network{5};
  netdetect::LinkReport report;

  explicit FastInSpiteOfLoss(const std::function<bool(int from, int to)>& fast) {
    for (auto& host : network.hosts) host.sends = host.receives = 9e9;
    FakeNetwork lossy = network;
    lossy[3].loss = 0.03;
    const netdetect::LinkReport all = lossy.measure();
    report.links = all.links;
    for (netdetect::Link& link : report.links) {
      for (netdetect::Rate& rate : link.forward.rates)
        rate.bits_per_second = fast(link.a, link.b) ? 9e9 : rate.bits_per_second;
      for (netdetect::Rate& rate : link.backward.rates)
        rate.bits_per_second = fast(link.b, link.a) ? 9e9 : rate.bits_per_second;
    }
    for (const auto& [a, b] : pairs_to_repeat(network.link_hosts(), report.links)) {
      const auto at = std::find_if(all.links.begin(), all.links.end(),
                                   [a = a, b = b](const netdetect::Link& link) { return link.a == a && link.b == b; });
      report.second_pass.push_back(*at);
      report.second_pass.back().again = true;
    }
  }
  std::vector<std::string> found() const { return heads(link_findings(network.link_hosts(), report)); }
};

TEST(LinkFindings, ALossyHostIsFoundThoughSomeOfItsLinksAreFast) {
  using Pairs = std::set<std::pair<int, int>>;
  for (const Pairs& slow : {Pairs{{0, 3}, {2, 3}}, Pairs{{3, 1}, {4, 3}}, Pairs{{3, 0}}, Pairs{{4, 3}}}) {
    const FastInSpiteOfLoss cluster([&](int from, int to) {
      return (from == 3 || to == 3) && !slow.contains({from, to});
    });
    EXPECT_THAT(cluster.found(), ElementsAre("link-loss h3 eth3")) << ::testing::PrintToString(slow);
  }
}

// Every connection to a host that loses frames is slow, so its links come last and may not be measured in time.
TEST(LinkFindings, ALossyHostIsFoundThoughThereWasNoTimeForMostOfItsLinks) {
  for (const int n : {4, 8, 16}) {
    for (const int n_measured : {0, 1}) {
      for (const int faulty : {0, 2, n - 1}) {
        FakeNetwork network(n);
        network[faulty].loss = 0.03;
        int n_seen = 0;
        network.left_out = [&](int a, int b) { return (a == faulty || b == faulty) && ++n_seen > n_measured; };
        const auto findings = network.findings();
        const std::string name = std::to_string(faulty);
        EXPECT_THAT(heads(findings), ElementsAre("link-loss h" + name + " eth" + name)) << n << " " << n_measured;
      }
    }
  }
}

// The connections of host 5 fail when they are measured again.
struct BrokenOff {
  FakeNetwork network{8};
  netdetect::LinkReport report;

  explicit BrokenOff(double loss, double rate, int n_broken) {
    network[5].loss = loss;
    network[5].sends = network[5].receives = rate;
    report = network.measure();
    for (netdetect::Link& link : report.second_pass) {
      if (link.a != 5 && link.b != 5) continue;
      for (netdetect::Direction* d : {&link.forward, &link.backward}) {
        d->rates.clear();
        d->paced = {};
        if (n_broken > 0) d->error = "no answer within 3 s";
      }
      --n_broken;
    }
  }
  std::vector<std::string> found() const { return heads(link_findings(network.link_hosts(), report)); }
};

TEST(LinkFindings, AHostThatLosesSoMuchThatItCanNotBeMeasuredAgainIsFound) {
  for (const double rate : {941e6, 10e6}) {
    EXPECT_THAT(BrokenOff(0.08, rate, 3).found(), ElementsAre("link-loss h5 eth5")) << rate;
    EXPECT_THAT(BrokenOff(0.08, rate, 2).found(), ElementsAre("link-loss h5 eth5")) << rate;
    for (const auto& found : {BrokenOff(0.08, rate, 1).found(), BrokenOff(0.08, rate, 0).found(),
                              BrokenOff(0.015, rate, 3).found(), BrokenOff(0, rate, 3).found()}) {
      EXPECT_THAT(found, Not(Contains(HasSubstr("link-loss")))) << rate;
    }
  }
}

TEST(LinkFindings, AHostForWhichThereWasNoTimeIsMeasuredAndNotBlamed) {
  FakeNetwork network(8);
  network.left_out = [](int a, int b) { return a == 3 || b == 3; };
  const netdetect::LinkReport report = network.measure();
  const auto n = std::count_if(report.second_pass.begin(), report.second_pass.end(),
                               [](const netdetect::Link& link) { return link.a == 3 || link.b == 3; });
  EXPECT_EQ(n, 3);
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)), IsEmpty());
}

TEST(LinkFindings, ABadPathToAHostForWhichThereWasNoTimeIsFound) {
  FakeNetwork network(8);
  network.left_out = [](int a, int b) { return b == 7 && a != 2; };
  network.special = [](int from, int to, netdetect::Rate& rate) {
    if (std::minmax(from, to) == std::minmax(2, 7)) rate.bits_per_second /= 20;
  };
  EXPECT_THAT(heads(network.findings()), ElementsAre("link-slow h2 to h7"));
}

TEST(LinkFindings, ASlowHostForWhichThereWasNoTimeAndThatLosesIsFound) {
  FakeNetwork network(8);
  network[6].sends = network[6].receives = 200e6;
  network[6].loss = 0.05;
  network.left_out = [](int a, int b) { return (a == 6 || b == 6) && a > 1; };
  network.special = [](int from, int to, netdetect::Rate& rate) {
    if ((from == 6 || to == 6) && rate.n_segments < 1000)
      rate.n_retransmits = std::min<std::uint64_t>(2, rate.n_retransmits);
  };
  EXPECT_THAT(heads(network.findings()), ElementsAre("link-loss h6 eth6"));
}

TEST(LinkFindings, WhereThereWasTimeForFewLinksOfAnyHostNobodyIsMeasuredAgain) {
  FakeNetwork network(8);
  network.left_out = [](int a, int b) { return (a + b) % 3 != 0; };
  EXPECT_THAT(network.measure().second_pass, IsEmpty());
}

// With lost frames, a connection may by chance be as fast as a link of 100 Mb/s.
TEST(LinkFindings, ALossThatHeldStreamsShowIsNotTakenForAWrongNegotiation) {
  for (const bool held : {false, true}) {
    FakeNetwork network(6);
    network[2].sends = network[2].receives = 93e6;
    network[2].loss = 0.03;
    network.special = [](int from, int to, netdetect::Rate& rate) {
      if ((from == 2 || to == 2) && rate.n_streams == 1) rate.bits_per_second *= 5;  // as fast as several streams
    };
    netdetect::LinkReport report = network.measure();
    bool first = true;  // one direction without paced streams doesn't hide the others' loss
    for (netdetect::Link& link : report.second_pass) {
      for (netdetect::Direction* d : {&link.forward, &link.backward}) {
        if (!held || ((link.a == 2 || link.b == 2) && first)) d->paced = {};
      }
      first = first && link.a != 2 && link.b != 2;
    }
    const auto findings = link_findings(network.link_hosts(), report);
    ASSERT_EQ(findings.size(), 1u) << ::testing::PrintToString(heads(findings));
    EXPECT_EQ(findings[0].code, held ? "link-loss" : "link-slow");
    EXPECT_THAT(findings[0].text, HasSubstr("others move 960 Mb/s"));
  }
}

// On a busy machine senders were kept from running.
TEST(LinkFindings, WhereEverythingIsFasterThanItsLossAllowsNothingIsLost) {
  const FastInSpiteOfLoss cluster([](int, int) { return true; });
  EXPECT_THAT(cluster.report.second_pass, IsEmpty());
  EXPECT_THAT(cluster.found(), IsEmpty());
}

TEST(LinkFindings, LossOfTwoHostsIsThePairs) {
  FakeNetwork network(2);
  network[1].loss = 0.03;
  EXPECT_THAT(heads(network.findings()), ElementsAre("link-loss h0 to h1"));
}

TEST(LinkFindings, WhatAllLoseIsHowThisNetworkIs) {
  FakeNetwork network(6);
  for (auto& host : network.hosts) host.loss = 0.01;  // 2 % loss on every link: a policer
  EXPECT_THAT(heads(network.findings()), ElementsAre("more-streams all hosts"));
}

TEST(LinkFindings, ALossThatTheSecondPassDoesNotConfirmIsNone) {
  FakeNetwork network(6);
  network[2].loss = 0.03;
  netdetect::LinkReport report = network.measure();
  for (netdetect::Link& link : report.second_pass) {
    for (netdetect::Direction* d : {&link.forward, &link.backward}) {
      for (netdetect::Rate& rate : d->rates) rate.n_retransmits = 0;
      d->paced.n_retransmits = 0;
    }
  }
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)), IsEmpty());
}

TEST(LinkFindings, WithoutTimeForASecondPassMuchLossOfSlowSegmentsIsEnough) {
  for (const bool of_host : {false, true}) {
    for (const std::uint64_t n_lost : {0u, 15u, 30u}) {
      FakeNetwork network(5);
      network.has_second_pass = false;
      network.paced = [=](int from, int to) {
        netdetect::Rate rate;
        rate.n_segments = 1000;
        rate.n_retransmits = from == 1 && (of_host || to == 2) ? n_lost : 0;
        return rate;
      };
      const auto found = heads(network.findings());
      if (n_lost > 20) {
        EXPECT_THAT(found, ElementsAre(of_host ? "link-loss h1 eth1" : "link-loss h1 to h2"));
      } else {
        EXPECT_THAT(found, IsEmpty()) << of_host << " " << n_lost;
      }
    }
  }
}

TEST(LinkFindings, ASecondLookThatSawLittleAcquitsNobody) {
  for (const std::uint64_t n_again : {0u, 40u, 149u, 150u}) {  // per measurement; the pair is measured again twice
    FakeNetwork network(5);
    network.paced = [=](int from, int to) {
      netdetect::Rate rate;
      rate.n_segments = 1000;
      rate.n_retransmits = from == 1 && to == 2 ? 30 : 0;
      return rate;
    };
    netdetect::LinkReport report = network.measure();
    for (netdetect::Link& link : report.second_pass) link.forward.paced = netdetect::Rate{4, 1e6, 0.3, n_again, 0};
    const auto found = link_findings(network.link_hosts(), report);
    ASSERT_EQ(found.size(), n_again < 150 ? 1u : 0u) << n_again;
    if (found.empty()) continue;
    EXPECT_EQ(found[0].code + " " + found[0].subject, "link-loss h1 to h2");
    EXPECT_EQ(found[0].text, "3 % of what h1 sends is lost and sent again");
  }
}

TEST(LinkFindings, FewSlowSegmentsOfTheFirstPassLeaveTheWordToTheStreams) {
  for (const std::uint64_t n_segments : {0u, 199u, 200u}) {
    netdetect::Link link;
    link.b = 1;
    netdetect::Rate full;
    full.n_segments = 1000;
    full.n_retransmits = 40;
    link.forward.rates = {full, full};
    link.forward.paced.n_segments = n_segments;
    const netdetect::Edge first = netdetect::edges_of({link}).at({0, 1});
    EXPECT_EQ(first.paced, n_segments >= 200) << n_segments;
    EXPECT_EQ(first.n_segments, n_segments >= 200 ? n_segments : 2000);
    EXPECT_EQ(first.n_retransmits, n_segments >= 200 ? 0 : 80);
    link.again = true;  // second pass: few segments are enough, because its pairs are judged together
    EXPECT_EQ(netdetect::edges_of({link}).at({0, 1}).paced, n_segments > 0) << n_segments;
  }
}

// Streams at full speed also retransmit after losses in frames of many segments, and when a sender that was kept from
// running takes segments for lost. Paced segments, sent one by one, show the link's own loss.
TEST(LinkFindings, WhatIsSentSlowlyInTheFirstPassDecidesWhatALinkLoses) {
  for (const std::uint64_t n_lost : {0u, 9u, 12u, 30u}) {
    FakeNetwork network(5);
    for (auto& host : network.hosts) host.sends = host.receives = 20e9;
    network.special = [](int, int, netdetect::Rate& rate) {
      rate.n_retransmits = rate.n_segments / 50;
    };  // too fast for a link that loses so much
    network.paced = [n_lost](int from, int to) {
      netdetect::Rate rate;
      rate.n_streams = 4;
      rate.n_segments = 1000;
      rate.n_retransmits = from == 1 && to == 2 ? n_lost : 0;
      return rate;
    };
    const auto found = heads(network.findings());
    if (n_lost > 10) {
      EXPECT_THAT(found, ElementsAre("link-loss h1 to h2")) << n_lost;
    } else {
      EXPECT_THAT(found, IsEmpty()) << n_lost;
    }
  }
}

TEST(LinkFindings, ASlownessThatTheSecondPassDoesNotConfirmIsNone) {
  FakeNetwork network(6);
  network[2].sends = network[2].receives = 50e6;
  netdetect::LinkReport report = network.measure();
  ASSERT_THAT(report.second_pass, Not(IsEmpty()));
  for (netdetect::Link& link : report.second_pass) {
    for (netdetect::Direction* d : {&link.forward, &link.backward}) {
      for (netdetect::Rate& rate : d->rates) rate.bits_per_second = 900e6;
    }
  }
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)), IsEmpty());
}

TEST(LinkFindings, WithoutASecondPassOnlyWhatIsUnmistakable) {
  FakeNetwork slow(6), very_slow(6);
  slow.has_second_pass = very_slow.has_second_pass = false;
  slow[2].sends = slow[2].receives = 300e6;
  very_slow[2].sends = very_slow[2].receives = 20e6;
  EXPECT_THAT(heads(slow.findings()), IsEmpty());
  EXPECT_THAT(heads(very_slow.findings()), ElementsAre("link-slow h2 eth2"));
}

TEST(LinkFindings, AHostForWhichThereWasNoTimeIsNamedByTheFirstPass) {
  FakeNetwork network(8);
  network[2].sends = network[2].receives = 10e6;
  network[5].sends = network[5].receives = 50e6;
  netdetect::LinkReport report = network.measure();
  std::erase_if(report.second_pass, [](const netdetect::Link& link) { return link.a == 2 || link.b == 2; });
  ASSERT_THAT(report.second_pass, Not(IsEmpty()));
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)),
              UnorderedElementsAre("link-slow h2 eth2", "link-slow h5 eth5"));
}

TEST(LinkFindings, AMeasurementThatFailedAcquitsNobody) {
  FakeNetwork network(6);
  network[2].sends = network[2].receives = 10e6;
  netdetect::LinkReport report = network.measure();
  int n_failed = 0;
  for (netdetect::Link& link : report.second_pass) {
    if (n_failed > 0 || (link.a != 2 && link.b != 2)) continue;
    ++n_failed;
    for (netdetect::Direction* d : {&link.forward, &link.backward}) {
      d->rates.clear();
      d->error = "no answer";
    }
  }
  ASSERT_EQ(n_failed, 1);
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)), Contains("link-slow h2 eth2"));
}

TEST(LinkFindings, NamesTheHostThatIsFar) {
  FakeNetwork network(5);
  network[4].extra_us = 2000;
  const auto findings = network.findings();
  EXPECT_THAT(heads(findings), ElementsAre("link-latency h4 eth4"));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_THAT(findings[0].text, HasSubstr("2.27 ms, between others 66 us"));
}

TEST(LinkFindings, NamesAPathThatIsFar) {
  FakeNetwork network(5);
  network.pair_us = [](int a, int b) { return a == 0 && b == 3 ? 500.0 : 0.0; };
  const auto findings = network.findings();
  EXPECT_THAT(heads(findings), ElementsAre("link-latency h0 to h3"));
  EXPECT_EQ(findings[0].severity, Severity::kNote);
}

TEST(LinkFindings, OfTwoHostsTellsWhatLooksLikeAWrongNegotiation) {
  for (const auto& [rate, mbps] : std::vector<std::pair<double, const char*>>{{9.4e6, "10 Mb/s"}, {94e6, "100 Mb/s"}}) {
    FakeNetwork network(2);
    for (auto& host : network.hosts) host.sends = host.receives = rate;
    const auto findings = network.findings();
    EXPECT_THAT(heads(findings), ElementsAre("link-slow h0 to h1"));
    EXPECT_THAT(findings[0].text, HasSubstr(std::string("negotiated at ") + mbps));
  }
  for (const double rate : {30e6, 70e6, 120e6, 941e6, 20e9}) {
    FakeNetwork network(2);
    for (auto& host : network.hosts) host.sends = host.receives = rate;
    EXPECT_THAT(heads(network.findings()), IsEmpty()) << rate;
  }
}

TEST(LinkFindings, AHostThatIsFarMayBeSlowToo) {
  FakeNetwork network(5);
  for (auto& host : network.hosts) host.sends = host.receives = 9.4e6;
  network[2].extra_us = 2000;
  EXPECT_THAT(heads(network.findings()), UnorderedElementsAre("link-latency h2 eth2", "link-slow all hosts"));
}

// The others were measured with it alone, for want of time.
TEST(LinkFindings, TheOnlyPeerOfTwoHostsMayBeWhyTheyAreSlow) {
  for (const double rate : {9.4e6, 94e6}) {
    FakeNetwork network(3);
    network.has_second_pass = false;
    network[2].sends = network[2].receives = rate;
    network.left_out = [](int a, int b) { return a == 0 && b == 1; };
    EXPECT_THAT(heads(network.findings()), ElementsAre("link-slow h2 eth2"));
    network[0].sends = network[0].receives = network[1].sends = network[1].receives = rate;
    const auto findings = network.findings();
    EXPECT_THAT(heads(findings), ElementsAre("link-slow h2 eth2"));
    EXPECT_THAT(findings[0].details, Contains("h0 and h1: measured with such a host alone, and may be as slow"));
  }
}

TEST(LinkFindings, AllHostsAtTenMegabitsAreOneFinding) {
  FakeNetwork network(6);
  for (auto& host : network.hosts) host.sends = host.receives = 9.4e6;
  EXPECT_THAT(heads(network.findings()), ElementsAre("link-slow all hosts"));
}

TEST(LinkFindings, OfTwoHostsTellsADirectionThatLags) {
  FakeNetwork network(2);
  network[1].sends = 20e6;
  const auto findings = network.findings();
  EXPECT_THAT(heads(findings), ElementsAre("link-asymmetric h0 to h1"));
  EXPECT_THAT(findings[0].text, HasSubstr("960 Mb/s there and 20.4 Mb/s back"));
}

TEST(LinkFindings, ComparesWithWhatTheInterfacesPromise) {
  struct Case {
    double rate;
    int speed;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {941e6, 1000, {}},
      {941e6, 10000, {"link-below-nominal h0 to h1"}},
      {200e6, 1000, {"link-below-nominal h0 to h1"}},
      {15e9, 100000, {}},  // limited by a single sending thread, not by the link
      {4e9, 100000, {}},
      {94e6, 1000, {"link-slow h0 to h1"}},
      {200e6, 0, {}},  // unknown
  };
  for (const Case& c : cases) {
    FakeNetwork network(2);
    for (auto& host : network.hosts) {
      host.sends = host.receives = c.rate;
      host.speed_mbps = c.speed;
    }
    EXPECT_EQ(heads(network.findings()), c.expected) << c.rate << " of " << c.speed;
  }
  FakeNetwork all(5);
  for (auto& host : all.hosts) host.speed_mbps = 10000;
  EXPECT_THAT(heads(all.findings()), ElementsAre("link-below-nominal all hosts"));
}

TEST(LinkFindings, TellsWhatItMeasuredApartFromWhatThatIsComparedWith) {
  FakeNetwork network(4);
  for (auto& host : network.hosts) host.sends = host.receives = 13.7e9;
  network[2].receives = 9.4e6;
  const auto findings = network.findings();
  ASSERT_EQ(heads(findings), std::vector<std::string>{"link-asymmetric h2 eth2"});
  const Finding& f = findings[0];
  EXPECT_THAT(f.text, HasSubstr(" Mb/s measured the same way"));
  EXPECT_THAT(f.details, ::testing::Not(IsEmpty()));
  EXPECT_THAT(f.details, ::testing::Each(HasSubstr("h2")));
  EXPECT_THAT(f.comparison, ::testing::Not(IsEmpty()));
  EXPECT_THAT(f.comparison, ::testing::Each(::testing::Not(HasSubstr("h2"))));
  // All figures have the same unit, so that users can compare them.
  EXPECT_THAT(f.details, ::testing::Each(HasSubstr(" Mb/s")));
  EXPECT_THAT(f.comparison, ::testing::Each(HasSubstr(" Mb/s")));
}

TEST(LinkFindings, SaysWhatTheSlowHostsInterfaceSays) {
  FakeNetwork network(4);
  for (auto& host : network.hosts) host.speed_mbps = 1000;
  network[2].sends = network[2].receives = 94e6;
  network[2].speed_mbps = 100;
  const auto findings = network.findings();
  EXPECT_THAT(heads(findings), ElementsAre("link-slow h2 eth2"));
  EXPECT_THAT(findings[0].details,
              ::testing::Contains("eth2 says that it runs at 100 Mb/s, those of other hosts at up to 1 Gb/s"));
}

TEST(LinkFindings, NamesHostsWhoseMtuDiffers) {
  FakeNetwork network(4);
  network[2].mtu = 9000;
  const auto findings = network.findings();
  EXPECT_THAT(heads(findings), ElementsAre("mtu-mismatch h2 eth2"));
  EXPECT_EQ(findings[0].text, "its MTU is 9000, that of 3 hosts is 1500");
  EXPECT_EQ(findings[0].command, "ip link set eth2 mtu 1500  # on h2");
  FakeNetwork two(2);
  two[0].mtu = 9000;
  EXPECT_THAT(heads(two.findings()), ElementsAre("mtu-mismatch h0 eth0"));
}

TEST(LinkFindings, NamesWhereLargeFramesVanish) {
  const auto with_path_mtu = [](int n, const std::function<bool(int, int)>& small) {
    FakeNetwork network(n);
    for (auto& host : network.hosts) host.mtu = 9000;
    netdetect::LinkReport report = network.measure();
    for (netdetect::Link& link : report.links) {
      if (small(link.a, link.b)) link.forward.path_mtu = link.backward.path_mtu = 1500;
    }
    return link_findings(network.link_hosts(), report);
  };
  EXPECT_THAT(heads(with_path_mtu(4, [](int, int) { return true; })), ElementsAre("mtu-path all hosts"));
  EXPECT_THAT(heads(with_path_mtu(4, [](int a, int b) { return a == 2 || b == 2; })), ElementsAre("mtu-path h2 eth2"));
  const auto pair = with_path_mtu(4, [](int a, int b) { return a == 0 && b == 3; });
  EXPECT_THAT(heads(pair), ElementsAre("mtu-path h0 to h3"));
  EXPECT_THAT(pair[0].text, HasSubstr("more than 1500 bytes do not arrive"));
  EXPECT_EQ(pair[0].command, "ping -M do -s 8972 h3  # on h0");
  EXPECT_THAT(heads(with_path_mtu(2, [](int, int) { return true; })), ElementsAre("mtu-path h0 to h1"));
}

TEST(LinkFindings, APathIsAsWideAsTheSizesThatWereTried) {
  FakeNetwork network(3);
  network[0].mtu = network[1].mtu = 9000;
  network[2].mtu = 1442;  // 1430 is the largest of the others' sizes that it can take
  const auto with = [&](int to_small) {
    netdetect::LinkReport report = network.measure();
    for (netdetect::Link& link : report.links) {
      if (link.b != 2) continue;
      link.forward.path_mtu = to_small;
      link.backward.path_mtu = std::min(1442, to_small + 12);
    }
    return heads(link_findings(network.link_hosts(), report));
  };
  EXPECT_THAT(with(1430), ElementsAre("mtu-mismatch h2 eth2"));
  EXPECT_THAT(with(1400), UnorderedElementsAre("mtu-mismatch h2 eth2", "mtu-path h2 eth2"));
}

TEST(LinkFindings, ASlowCableBetweenMachinesIsNotHiddenByLinksInsideThem) {
  FakeNetwork network(4);
  network.special = [](int a, int b, netdetect::Rate& rate) { rate.bits_per_second = a / 2 == b / 2 ? 20e9 : 94e6; };
  auto hosts = network.link_hosts();
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].machine = i < 2 ? "one" : "two";
  const auto findings = link_findings(hosts, network.measure());
  EXPECT_THAT(heads(findings), Contains("link-slow all hosts"));
}

TEST(LinkFindings, ALinkWithoutDataIsAFailureIfLargePacketsVanish) {
  FakeNetwork network(3);
  netdetect::LinkReport report = network.measure();
  for (netdetect::Link& link : report.links) {
    if (link.a != 0 || link.b != 1) continue;
    link.forward.rates.clear();
    link.forward.error = "timed out";
  }
  auto findings = link_findings(network.link_hosts(), report);
  EXPECT_THAT(heads(findings), ElementsAre("link-not-measured h0 to h1"));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  for (netdetect::Link& link : report.links) link.forward.path_mtu = link.a == 0 && link.b == 1 ? 1400 : 1500;
  findings = link_findings(network.link_hosts(), report);
  EXPECT_THAT(heads(findings), ElementsAre("link-not-measured h0 to h1", "mtu-path h0 to h1"));
  EXPECT_EQ(findings[0].severity, Severity::kFailure);
}

TEST(LinkFindings, AConnectionThatCameTooLateIsExplainedByAHostThatLosesFrames) {
  FakeNetwork network(4);
  network[1].loss = 0.03;
  netdetect::LinkReport report = network.measure();
  for (netdetect::Link& link : report.links) {
    if (link.a != 0 || link.b != 1) continue;
    link.forward.rates.clear();
    link.forward.error = "timed out";
  }
  std::erase_if(report.second_pass, [](const netdetect::Link& link) { return link.a == 0 && link.b == 1; });
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)), ElementsAre("link-loss h1 eth1"));
  for (netdetect::Link& link : report.links) link.forward.path_mtu = link.a == 0 && link.b == 1 ? 1400 : 1500;
  EXPECT_THAT(heads(link_findings(network.link_hosts(), report)),
              ElementsAre("link-loss h1 eth1", "link-not-measured h0 to h1", "mtu-path h0 to h1"));
}

netdetect::LinkReport with_ring(const FakeNetwork& network, double share) {
  netdetect::LinkReport report = network.measure();
  for (std::size_t i = 0; i < network.hosts.size(); ++i) {
    report.ring.order.push_back(static_cast<int>(i));
    report.ring.bits_per_second.push_back(941e6 * share);
  }
  return report;
}

TEST(LinkFindings, PairsInsideAMachineAreNoMeasureForThoseBetweenMachines) {
  std::vector<LinkHost> hosts;
  for (int i = 0; i < 4; ++i) {
    LinkHost host;
    host.name = "c" + std::to_string(i);
    host.interface = "eth0";
    host.kind = "physical";
    host.mtu = 1500;
    host.machine = i < 2 ? "one" : "two";
    hosts.push_back(host);
  }
  netdetect::LinkReport report;
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      netdetect::Link link;
      link.a = a;
      link.b = b;
      netdetect::Rate rate;
      rate.n_streams = 1;
      rate.bits_per_second =
          hosts[static_cast<std::size_t>(a)].machine == hosts[static_cast<std::size_t>(b)].machine ? 40e9 : 0.94e9;
      rate.seconds = 0.2;
      link.forward.rates = link.backward.rates = {rate};
      report.links.push_back(link);
    }
  }
  EXPECT_TRUE(pairs_to_repeat(hosts, report.links).empty());
  EXPECT_THAT(link_findings(hosts, report), IsEmpty());
}

TEST(LinkFindings, TellsASharedSwitch) {
  FakeNetwork network(6);
  EXPECT_THAT(heads(link_findings(network.link_hosts(), with_ring(network, 0.9))), IsEmpty());
  const auto half = link_findings(network.link_hosts(), with_ring(network, 0.4));
  EXPECT_THAT(heads(half), ElementsAre("link-oversubscribed all hosts"));
  EXPECT_EQ(half[0].severity, Severity::kNote);
  const auto fifth = link_findings(network.link_hosts(), with_ring(network, 0.2));
  EXPECT_EQ(fifth[0].severity, Severity::kWarning);
  // Containers of one machine share its processor, so this is no finding.
  network.machine = "boot-id";
  EXPECT_THAT(heads(link_findings(network.link_hosts(), with_ring(network, 0.2))), IsEmpty());
}

TEST(LinkFindings, TellsThatSeveralStreamsHelp) {
  FakeNetwork network(4);
  network.gain_of_streams = 2.5;
  const auto findings = network.findings();
  EXPECT_THAT(heads(findings), ElementsAre("more-streams all hosts"));
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_THAT(findings[0].command, HasSubstr("DRUN_STREAMS=4"));
}

TEST(PairsToRepeat, PairsSuspectsWithGoodHostsAndAddsGoodPairs) {
  FakeNetwork network(8);
  network[3].sends = network[3].receives = 9.4e6;
  const auto pairs = pairs_to_repeat(network.link_hosts(), network.measure().links);
  int of_anomaly = 0, of_others = 0;
  std::set<int> peers;
  for (const auto& [a, b] : pairs) {
    EXPECT_LT(a, b);
    if (a == 3 || b == 3) peers.insert(a == 3 ? b : a);
    (a == 3 || b == 3 ? of_anomaly : of_others) += 1;
  }
  EXPECT_EQ(of_anomaly, 3);
  EXPECT_EQ(peers.size(), 3u);
  EXPECT_EQ(of_others, 4);
}

TEST(PairsToRepeat, KeepsTheLimitAndBeginsWithSomethingOfAll) {
  FakeNetwork network(16);
  for (const int host : {2, 5, 11}) network[host].sends = network[host].receives = 9.4e6;
  const auto links = network.measure().links;
  for (const int limit : {0, 1, 4, 10}) {
    EXPECT_LE(pairs_to_repeat(network.link_hosts(), links, {}, limit).size(), static_cast<std::size_t>(limit));
  }
  const auto four = pairs_to_repeat(network.link_hosts(), links, {}, 4);
  std::set<int> anomalies;
  for (const auto& [a, b] : four) {
    for (const int host : {a, b}) {
      if (host == 2 || host == 5 || host == 11) anomalies.insert(host);
    }
  }
  EXPECT_EQ(anomalies.size(), 3u);
  netdetect::LinkReport report;
  report.links = links;
  for (const auto& [a, b] : four) {
    for (const netdetect::Link& link : links) {
      if (link.a == a && link.b == b) report.second_pass.push_back(link);
    }
  }
  EXPECT_EQ(link_findings(network.link_hosts(), report).size(), 3u);
}

TEST(PairsToRepeat, AddsWhatABaselineWants) {
  FakeNetwork network(5);
  const auto pairs = pairs_to_repeat(network.link_hosts(), network.measure().links, {{1, 4}});
  EXPECT_THAT(pairs, ::testing::Contains(std::pair(1, 4)));
  EXPECT_GT(pairs.size(), 2u);
}

TEST(PairsToRepeat, NoneOfNothing) {
  EXPECT_THAT(pairs_to_repeat({}, {}), IsEmpty());
  EXPECT_THAT(link_findings({}, {}), IsEmpty());
}

// All pairs of `rates.size()` hosts. A link has the rate of its slower end, measured with `n_streams` streams.
std::vector<netdetect::Link> links_at(const std::vector<double>& rates, int n_streams = 1) {
  std::vector<netdetect::Link> out;
  for (std::size_t a = 0; a < rates.size(); ++a) {
    for (std::size_t b = a + 1; b < rates.size(); ++b) {
      netdetect::Link link;
      link.a = static_cast<int>(a);
      link.b = static_cast<int>(b);
      netdetect::Rate rate;
      rate.n_streams = n_streams;
      rate.bits_per_second = std::min(rates[a], rates[b]);
      link.forward.rates.push_back(rate);
      link.backward.rates.push_back(rate);
      out.push_back(std::move(link));
    }
  }
  return out;
}

TEST(CrawlingHosts, AreThoseThatAreSlowWithEnoughPeers) {
  EXPECT_THAT(netdetect::crawling_hosts({}, 1), IsEmpty());
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 9e9, 9e9, 9e9}), 1), IsEmpty());
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 9e9, 10e6, 9e9}), 1), ElementsAre(2));
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 10e6, 9e9}), 1), IsEmpty());  // two peers are not enough
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 10e6, 10e6, 9e9, 9e9, 10e6, 9e9, 9e9}), 1),
              ElementsAre(1, 2, 5));
}

TEST(CrawlingHosts, AreNoneWhereAllAreSlowOrFastEnough) {
  EXPECT_THAT(netdetect::crawling_hosts(links_at({10e6, 10e6, 10e6, 10e6}), 1), IsEmpty());
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 9e9, 200e6, 9e9}), 1), IsEmpty());
}

TEST(CrawlingHosts, AreToldByThisNumberOfStreams) {
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 9e9, 10e6, 9e9}), 4), IsEmpty());
  EXPECT_THAT(netdetect::crawling_hosts(links_at({9e9, 9e9, 10e6, 9e9}, 4), 4), ElementsAre(2));
}

}  // namespace
}  // namespace drun::check
