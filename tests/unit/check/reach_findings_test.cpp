#include "check/reach_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/unit/netdetect/hosts.h"

namespace drun::check::testing {
namespace {

using netdetect::testing::all_reached;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr auto kReached = netdetect::ProbeOutcome::kReached;
constexpr auto kTimedOut = netdetect::ProbeOutcome::kTimedOut;

// Like the test cluster: the data NIC under several names, a second NIC with an address of its own that leads nowhere,
// and docker0 with the same address everywhere.
std::vector<netdetect::HostInterfaces> cluster(int n) {
  const std::vector<std::string> data = {"enp3s0", "eth1", "ens5"};
  std::vector<netdetect::HostInterfaces> hosts;
  for (int i = 0; i < n; ++i) {
    const std::string number = std::to_string(i + 1);
    auto docker = netdetect::testing::nic("docker0", {"172.17.0.1/16"});
    docker.kind = "bridge";
    auto decoy = netdetect::testing::nic("eno2", {"192.168.10" + number + ".1/24"});
    decoy.route_metric = 0;
    hosts.push_back(netdetect::testing::host(
        "h" + std::to_string(i), {netdetect::testing::nic(data[static_cast<std::size_t>(i) % 3],
                                                          {"10.0.0." + number + "/24", "fd00::" + number + "/64"}),
                                  decoy, docker}));
  }
  return hosts;
}

bool is_decoy(const netdetect::Candidate& to) { return to.address.text().rfind("192.", 0) == 0; }

template <typename F>
std::vector<Finding> run(const std::vector<netdetect::HostInterfaces>& hosts, F answer,
                         const std::vector<std::string>& wanted = {}) {
  const auto candidates = netdetect::find_candidates(hosts, wanted);
  EXPECT_TRUE(candidates);
  const auto results = netdetect::testing::play(hosts, *candidates, answer);
  return reach_findings(hosts, *candidates, results, netdetect::choose_subset(hosts, *candidates, results));
}

// The findings as "failure not-connected: h1 and h2".
std::vector<std::string> heads(const std::vector<Finding>& findings, Severity at_least = Severity::kWarning) {
  std::vector<std::string> out;
  for (const auto& f : findings) {
    EXPECT_NE(f.command, "") << f.code;  // each has one that fixes or investigates it
    if (f.severity < at_least) continue;
    const char* severity = f.severity == Severity::kFailure   ? "failure "
                           : f.severity == Severity::kWarning ? "warning "
                                                              : "note ";
    out.push_back(severity + f.code + ": " + f.subject);
  }
  return out;
}

const Finding& find(const std::vector<Finding>& findings, const std::string& code) {
  static const Finding none;
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  EXPECT_TRUE(found != findings.end()) << code;
  return found == findings.end() ? none : *found;
}

TEST(ReachFindings, HasOnlyNotesOnAHealthyClusterWithDecoys) {
  const auto findings =
      run(cluster(4), [](int, const netdetect::Candidate& to) { return is_decoy(to) ? kTimedOut : kReached; });
  EXPECT_THAT(heads(findings, Severity::kNote),
              UnorderedElementsAre("note interface-same-address: h0 docker0, h1 docker0, h2 docker0 and h3 docker0",
                                   "note interface-unreached: h0 eno2, h1 eno2, h2 eno2 and h3 eno2",
                                   "note names-differ: interfaces"));
  EXPECT_THAT(find(findings, "interface-unreached").details,
              Contains("h2 eno2 (physical, speed unknown): 192.168.103.1 timed out"));
  EXPECT_THAT(find(findings, "names-differ").details, ElementsAre("enp3s0: h0 and h3", "ens5: h2", "eth1: h1"));
}

struct DirectionCase {
  netdetect::ProbeOutcome outcome;
  const char* code;
  const char* words;
};

class OneDirection : public ::testing::TestWithParam<DirectionCase> {};

TEST_P(OneDirection, IsToldApart) {
  const auto& c = GetParam();
  const auto findings = run(cluster(4), [&](int from, const netdetect::Candidate& to) {
    if (is_decoy(to)) return kTimedOut;
    return from == 0 && to.host == 1 ? c.outcome : kReached;
  });
  EXPECT_THAT(heads(findings), ElementsAre(std::string("failure ") + c.code + ": h0 to h1"));
  EXPECT_THAT(find(findings, c.code).text, HasSubstr(c.words));
  EXPECT_THAT(find(findings, c.code).details, Contains(HasSubstr("h0 to h1, eth1 10.0.0.2: ")));
  EXPECT_THAT(find(findings, c.code).command, HasSubstr("# on h"));
}

INSTANTIATE_TEST_SUITE_P(
    Outcomes, OneDirection,
    ::testing::Values(
        DirectionCase{kTimedOut, "direction-filtered", "a firewall drops it"},
        DirectionCase{netdetect::ProbeOutcome::kRefused, "direction-refused", "refused"},
        DirectionCase{netdetect::ProbeOutcome::kUnreachable, "direction-no-route", "no route"},
        DirectionCase{netdetect::ProbeOutcome::kHostUnreachable, "direction-refused", "a firewall rejects it"},
        DirectionCase{netdetect::ProbeOutcome::kWrongPeer, "answered-by-another", "another machine with the address"}));

TEST(ReachFindings, NamesOneDirectionThatIsFilteredAndOneThatIsRefused) {
  const auto findings = run(cluster(5), [](int from, const netdetect::Candidate& to) {
    if (is_decoy(to)) return kTimedOut;
    if (from == 0 && to.host == 1) return kTimedOut;
    return from == 3 && to.host == 2 ? netdetect::ProbeOutcome::kRefused : kReached;
  });
  EXPECT_THAT(heads(findings),
              UnorderedElementsAre("failure direction-filtered: h0 to h1", "failure direction-refused: h3 to h2"));
}

TEST(ReachFindings, NamesAHiddenHost) {
  const auto findings = run(cluster(4), [](int, const netdetect::Candidate& to) {
    return is_decoy(to) || to.host == 2 ? kTimedOut : kReached;
  });
  EXPECT_THAT(heads(findings), ElementsAre("failure host-hidden: h2"));
  EXPECT_THAT(find(findings, "host-hidden").details,
              ElementsAre("h0 to h2, ens5 10.0.0.3: timed out", "h1 to h2, ens5 10.0.0.3: timed out",
                          "h3 to h2, ens5 10.0.0.3: timed out"));
  EXPECT_EQ(find(findings, "host-hidden").command, "nft list ruleset  # on h2");
}

TEST(ReachFindings, AHiddenHostIsAFailureForWhatNeedsBothDirections) {
  const auto hosts = cluster(4);
  const auto candidates = netdetect::find_candidates(hosts, {});
  ASSERT_TRUE(candidates);
  const auto results = netdetect::testing::play(hosts, *candidates, [](int, const netdetect::Candidate& to) {
    return is_decoy(to) || to.host == 0 ? kTimedOut : kReached;
  });
  const auto most = netdetect::choose_subset(hosts, *candidates, results, {});
  for (const auto& [purpose, severity, words] : std::vector<std::tuple<Purpose, Severity, std::string>>{
           {Purpose::kAll, Severity::kFailure, "libdrun can work with that, torch, Gloo, NCCL and MPI can not"},
           {Purpose::kUnknown, Severity::kWarning, "libdrun can work with that, torch, Gloo, NCCL and MPI can not"},
           {Purpose::kNccl, Severity::kFailure, "NCCL can not work with that"},
           {Purpose::kTorch, Severity::kFailure, "torch can not work with that"},
           {Purpose::kMpi, Severity::kFailure, "MPI can not work with that"},
           {Purpose::kLibdrun, Severity::kWarning, "libdrun can work with that"}}) {
    const Finding finding = find(reach_findings(hosts, *candidates, results, most, {}, purpose), "host-hidden");
    EXPECT_EQ(finding.severity, severity) << words;
    EXPECT_THAT(finding.text, HasSubstr(": " + words + ";"));
    EXPECT_THAT(finding.text, HasSubstr("put another host first"));
  }
}

TEST(ReachFindings, NamesTwoHiddenHostsAndThatTheyCantBeConnected) {
  const auto findings = run(cluster(4), [](int, const netdetect::Candidate& to) {
    return is_decoy(to) || to.host >= 2 ? kTimedOut : kReached;
  });
  EXPECT_THAT(heads(findings),
              ElementsAre("failure not-connected: h2 and h3", "failure host-hidden: h2", "failure host-hidden: h3"));
  EXPECT_EQ(find(findings, "not-connected").text, "neither can connect to the other");
  EXPECT_THAT(find(findings, "not-connected").hosts, ElementsAre(2, 3));
  EXPECT_THAT(find(findings, "not-connected").details,  // without the NICs that lead nowhere
              UnorderedElementsAre("h3 to h2, ens5 10.0.0.3: timed out", "h3 to h2, ens5 fd00::3: timed out",
                                   "h2 to h3, enp3s0 10.0.0.4: timed out", "h2 to h3, enp3s0 fd00::4: timed out"));
}

TEST(ReachFindings, NamesAHostThatReachesNobody) {
  const auto findings = run(cluster(4), [](int from, const netdetect::Candidate& to) {
    return is_decoy(to) || from == 1 ? kTimedOut : kReached;
  });
  EXPECT_THAT(heads(findings), ElementsAre("failure host-reaches-nobody: h1"));
}

TEST(ReachFindings, NamesAHostThatIsCutOff) {
  const auto findings = run(cluster(4), [](int from, const netdetect::Candidate& to) {
    return is_decoy(to) || from == 1 || to.host == 1 ? kTimedOut : kReached;
  });
  EXPECT_THAT(heads(findings), ElementsAre("failure not-connected: h1"));
  EXPECT_EQ(find(findings, "not-connected").text, "no connection with h0, h2 and h3 comes about, in either direction");
}

TEST(ReachFindings, NamesSubnetsThatNothingJoins) {
  const std::vector<netdetect::HostInterfaces> hosts = {
      netdetect::testing::host("a", {netdetect::testing::nic("x", {"10.0.0.1/24"})}),
      netdetect::testing::host("b", {netdetect::testing::nic("x", {"10.0.9.2/24"})})};
  for (const auto outcome : {netdetect::ProbeOutcome::kUnreachable, netdetect::ProbeOutcome::kHostUnreachable,
                             netdetect::ProbeOutcome::kTimedOut}) {
    const auto findings = run(hosts, [&](int, const netdetect::Candidate&) { return outcome; });
    EXPECT_THAT(heads(findings), ElementsAre("failure not-connected: a and b"));
    const Finding& finding = find(findings, "not-connected");
    EXPECT_THAT(finding.text, HasSubstr("different subnets"));
    EXPECT_THAT(finding.details, Contains("a is in 10.0.0.0/24"));
    // The finding names a firewall, too, unless the kernel has no route.
    const bool sure = outcome == netdetect::ProbeOutcome::kUnreachable;
    EXPECT_EQ(finding.text.find("firewall") == std::string::npos, sure) << finding.text;
    EXPECT_THAT(finding.command, HasSubstr("ip route; nft list ruleset"));
  }
}

TEST(ReachFindings, NamesAnAddressThatTwoHostsHaveInOneNetwork) {
  auto hosts = cluster(4);
  hosts[2].interfaces[1].addresses[0] = hosts[1].interfaces[1].addresses[0];
  const auto findings =
      run(hosts, [](int, const netdetect::Candidate& to) { return is_decoy(to) ? kTimedOut : kReached; });
  EXPECT_THAT(heads(findings), ElementsAre("warning address-duplicate: h1 eth1 and h2 ens5"));
  EXPECT_THAT(find(findings, "address-duplicate").text, HasSubstr("10.0.0.2"));
  EXPECT_THAT(find(findings, "ipv6-only").text, HasSubstr("IPv4"));  // both hosts have only IPv6 left
}

TEST(ReachFindings, NamesAnAddressThatBothOfTwoHostsHave) {
  const std::vector<netdetect::HostInterfaces> hosts = {
      netdetect::testing::host("a", {netdetect::testing::nic("x", {"10.0.0.1/24"})}),
      netdetect::testing::host("b", {netdetect::testing::nic("x", {"10.0.0.1/24"})})};
  EXPECT_THAT(heads(run(hosts, all_reached)), UnorderedElementsAre("failure no-address: a", "failure no-address: b",
                                                                   "failure address-duplicate: a x and b x"));
}

// Host c has no other address, so no host reaches it, while its own connections get answers now and then.
TEST(ReachFindings, AnAddressThatAnotherHostHasAsWellSaysWhyNobodyReachesAHost) {
  for (const bool other_way : {false, true}) {
    const std::vector<netdetect::HostInterfaces> hosts = {
        netdetect::testing::host("a", {netdetect::testing::nic("x", {"10.0.0.1/24"})}),
        netdetect::testing::host("b", {netdetect::testing::nic("x", {"10.0.0.2/24"})}),
        netdetect::testing::host("c", {netdetect::testing::nic("x", {"10.0.0.5/24"})}),
        netdetect::testing::host("d", {netdetect::testing::nic("x", {"10.0.0.6/24", "10.0.0.5/24"})})};
    const auto findings = run(hosts, [other_way](int from, const netdetect::Candidate&) {
      return from == 2 && !other_way ? netdetect::ProbeOutcome::kTimedOut : netdetect::ProbeOutcome::kReached;
    });
    EXPECT_THAT(heads(findings), ElementsAre("failure address-duplicate: c x and d x")) << other_way;
  }
}

TEST(ReachFindings, NamesTheInterfaceThatSendsIfAnotherOneListens) {
  const std::vector<netdetect::HostInterfaces> hosts = {
      netdetect::testing::host("a", {netdetect::testing::nic("eno1", {"10.0.0.1/24"}),
                                     netdetect::testing::nic("enp37s0f0", {"10.0.0.11/24"})}),
      netdetect::testing::host("b", {netdetect::testing::nic("x", {"10.0.0.2/24"})}),
      netdetect::testing::host("c", {netdetect::testing::nic("x", {"10.0.0.3/24"})})};
  for (const char* source : {"10.0.0.11", "10.0.0.1"}) {
    const auto candidates = netdetect::find_candidates(hosts, {"10.0.0.11/32", "x"});
    ASSERT_TRUE(candidates);
    auto results = netdetect::testing::play(hosts, *candidates, all_reached);
    for (auto& r : results)
      r.result.source = r.attempt.from == 0 ? source : r.attempt.from == 1 ? "10.0.0.2" : "10.0.0.3";
    const auto findings =
        reach_findings(hosts, *candidates, results, netdetect::choose_subset(hosts, *candidates, results));
    if (std::string(source) == "10.0.0.11") {
      EXPECT_THAT(heads(findings), IsEmpty());
      continue;
    }
    EXPECT_THAT(heads(findings), ElementsAre("warning sends-elsewhere: a eno1"));
    const Finding finding = find(findings, "sends-elsewhere");
    EXPECT_THAT(finding.text, HasSubstr("sends by eno1, listens on enp37s0f0"));
    EXPECT_THAT(finding.details,
                ElementsAre("a to b at 10.0.0.2: from 10.0.0.1 on eno1", "a to c at 10.0.0.3: from 10.0.0.1 on eno1"));
    EXPECT_EQ(finding.command, "ip route get 10.0.0.2  # on a");
  }
}

TEST(ReachFindings, NamesIpv6Only) {
  auto hosts = cluster(3);
  for (auto& h : hosts) h.interfaces[1].addresses.erase(h.interfaces[1].addresses.begin());
  const auto findings =
      run(hosts, [](int, const netdetect::Candidate& to) { return is_decoy(to) ? kTimedOut : kReached; });
  EXPECT_THAT(heads(findings), IsEmpty());
  EXPECT_EQ(find(findings, "ipv6-only").subject, "h0, h1 and h2");
}

TEST(ReachFindings, NamesMixedFamilies) {
  const std::vector<netdetect::HostInterfaces> hosts = {
      netdetect::testing::host("a", {netdetect::testing::nic("x", {"10.0.0.1/24"})}),
      netdetect::testing::host("b", {netdetect::testing::nic("x", {"fd00::2/64"})})};
  EXPECT_THAT(heads(run(hosts, all_reached)), ElementsAre("warning families-mixed: b"));
}

std::vector<netdetect::HostInterfaces> two_networks(int slow, int fast) {
  std::vector<netdetect::HostInterfaces> hosts;
  for (int i = 0; i < 3; ++i) {
    const std::string last = "." + std::to_string(i + 1) + "/24";
    hosts.push_back(
        netdetect::testing::host("h" + std::to_string(i), {netdetect::testing::nic("eth0", {"10.0.0" + last}, slow),
                                                           netdetect::testing::nic("eth1", {"10.1.0" + last}, fast)}));
  }
  return hosts;
}

TEST(ReachFindings, SaysWhyTheFastOneWasChosen) {
  const auto findings = run(two_networks(1000, 25000), all_reached);
  EXPECT_THAT(heads(findings, Severity::kNote), ElementsAre("note several-interfaces: h0 eth1, h1 eth1 and h2 eth1"));
  EXPECT_EQ(find(findings, "several-interfaces").details.front(),
            "h0: eth1 (25000 Mb/s) before eth0 (1000 Mb/s): it is faster");
}

TEST(ReachFindings, WarnsWhereNoSpeedIsKnown) {
  EXPECT_THAT(heads(run(two_networks(0, 0), all_reached)),
              ElementsAre("warning speed-unknown: h0 eth0, h1 eth0 and h2 eth0"));
}

TEST(ReachFindings, SaysWhatWasMeasured) {
  const auto hosts = two_networks(0, 0);
  auto candidates = netdetect::find_candidates(hosts, {});
  for (auto& c : candidates->tried) c.measured_mbps = c.address.text().rfind("10.1.", 0) == 0 ? 9400 : 94;
  const auto results = netdetect::testing::play(hosts, *candidates, all_reached);
  const auto findings =
      reach_findings(hosts, *candidates, results, netdetect::choose_subset(hosts, *candidates, results));
  EXPECT_THAT(heads(findings, Severity::kNote), ElementsAre("note several-interfaces: h0 eth1, h1 eth1 and h2 eth1"));
  EXPECT_EQ(find(findings, "several-interfaces").details.front(),
            "h0: eth1 (9400 Mb/s) before eth0 (94 Mb/s): it is faster");
}

TEST(ReachFindings, WarnsOfAFasterNetworkThatNobodyReaches) {
  const auto findings = run(two_networks(1000, 25000), [](int, const netdetect::Candidate& to) {
    return to.address.text().rfind("10.1.", 0) == 0 ? kTimedOut : kReached;
  });
  EXPECT_THAT(heads(findings), ElementsAre("warning faster-interface-unreached: h0 eth1, h1 eth1 and h2 eth1"));
  EXPECT_THAT(find(findings, "faster-interface-unreached").text, HasSubstr("10.1.0.0/24"));
}

TEST(ReachFindings, WarnsOfAFasterInterfaceThatOneHostDoesNotReach) {
  const auto findings = run(two_networks(1000, 25000), [](int from, const netdetect::Candidate& to) {
    return to.address.text() == "10.1.0.3" && from == 0 ? kTimedOut : kReached;
  });
  EXPECT_THAT(heads(findings), ElementsAre("warning faster-interface-partly-reached: h2 eth1"));
  EXPECT_THAT(find(findings, "faster-interface-partly-reached").details,
              ElementsAre("h2 eth1 (25000 Mb/s): 10.1.0.3 is not reached by h0 (timed out)"));
}

TEST(ReachFindings, NamesTheOptionThatLeavesAHostNothing) {
  auto hosts = cluster(3);
  const auto findings =
      run(hosts, [](int, const netdetect::Candidate& to) { return is_decoy(to) ? kTimedOut : kReached; },
          {"enp3s0", "eth1"});
  EXPECT_THAT(heads(findings), ElementsAre("failure interfaces-option: h2"));
}

TEST(ReachFindings, WarnsWhereTheOptionTakesTheSlowerOne) {
  EXPECT_THAT(heads(run(two_networks(1000, 25000), all_reached, {"eth0"})),
              ElementsAre("warning interfaces-option-slower: h0 eth0, h1 eth0 and h2 eth0"));
}

TEST(ReachFindings, NotesWhatIsDown) {
  auto hosts = cluster(2);
  hosts[0].interfaces.push_back(netdetect::testing::nic("eth7", {}));
  hosts[0].interfaces.back().up = false;
  hosts[1].interfaces.push_back(netdetect::testing::nic("eth8", {"10.9.9.9/24"}));
  hosts[1].interfaces.back().running = false;
  const auto findings =
      run(hosts, [](int, const netdetect::Candidate& to) { return is_decoy(to) ? kTimedOut : kReached; });
  EXPECT_THAT(heads(findings), IsEmpty());
  const auto notes = heads(findings, Severity::kNote);
  EXPECT_THAT(notes, Contains("note interface-unused: h0 eth7"));
  EXPECT_THAT(notes, Contains("note interface-unused: h1 eth8"));
}

TEST(ReachFindings, WarnsOfATunnel) {
  auto hosts = two_networks(0, 0);
  for (auto& h : hosts) {
    h.interfaces.pop_back();
    h.interfaces.back().kind = "wireguard";
  }
  EXPECT_THAT(heads(run(hosts, all_reached)), ElementsAre("warning tunnel-chosen: h0 eth0, h1 eth0 and h2 eth0"));
}

TEST(ReachFindings, SaysNothingOfOneHostOrOfThoseThatAreGone) {
  EXPECT_THAT(heads(run(cluster(1), all_reached)), IsEmpty());
  const auto hosts = cluster(3);
  const auto candidates = netdetect::find_candidates(hosts, {});
  std::vector<netdetect::AttemptResult> results;
  for (auto& r : netdetect::testing::play(hosts, *candidates, [](int, const netdetect::Candidate& to) {
         return is_decoy(to) ? kTimedOut : kReached;
       })) {
    const int to = candidates->tried[static_cast<std::size_t>(r.attempt.candidate)].host;
    if (r.attempt.from != 1 && to != 1) results.push_back(r);
  }
  const auto findings =
      reach_findings(hosts, *candidates, results, netdetect::choose_subset(hosts, *candidates, results, {1}), {1});
  for (const auto& finding : findings) EXPECT_THAT(finding.hosts, Not(Contains(1))) << finding.code;
  EXPECT_THAT(heads(findings), IsEmpty());
}

}  // namespace
}  // namespace drun::check::testing
