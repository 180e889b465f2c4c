#include "check/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/collect.h"

namespace drun::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Hosts a and b in one network, each of which reached the other.
launcher::NetworkProbe probe_of_two() {
  launcher::NetworkProbe out;
  const char* addresses[] = {"10.0.0.1", "10.0.0.2"};
  out.most.choice.reach = {{1, 1}, {1, 1}};
  for (int h = 0; h < 2; ++h) {
    netdetect::Interface nic;
    nic.name = "eth0";
    nic.kind = "physical";
    nic.up = nic.running = true;
    nic.mtu = 1500;
    nic.addresses = {netdetect::parse_address(addresses[h])};
    nic.addresses[0].prefix_length = 24;
    netdetect::HostInterfaces host;
    host.host = h == 0 ? "a" : "b";
    host.net_namespace = host.host;
    host.interfaces = {nic};
    out.inventories.push_back(std::move(host));
    netdetect::Candidate candidate;
    candidate.host = h;
    candidate.address = nic.addresses[0];
    out.candidates.tried.push_back(candidate);
    netdetect::HostChoice choice;
    choice.interface = "eth0";
    choice.address = nic.addresses[0];
    choice.reached_by_all = true;
    out.most.choice.hosts.push_back(choice);
  }
  for (int h = 0; h < 2; ++h) {
    netdetect::AttemptResult attempt;
    attempt.attempt = {h, 1 - h};
    attempt.result.outcome = netdetect::ProbeOutcome::kReached;
    out.results.push_back(attempt);
  }
  return out;
}

CheckResult result_of_two(const launcher::NetworkProbe& network) {
  CheckResult out;
  for (const auto& host : network.inventories) {
    CheckedHost checked;
    checked.name = host.host;
    checked.interfaces = host.interfaces;
    out.hosts.push_back(std::move(checked));
  }
  store_network(network, out);
  return out;
}

Observations observations(const launcher::NetworkProbe* network) {
  Observations out;
  out.machines = {"m1", "m2"};
  out.clock_offsets_ms.resize(2);
  out.network = network;
  return out;
}

std::vector<std::string> codes(const CheckResult& result) {
  std::vector<std::string> out;
  for (const auto& finding : result.findings) out.push_back(finding.code);
  return out;
}

TEST(StoreNetwork, TakesChoicesAndRejectionsAndKeepsTheFirstErrorOfAHost) {
  launcher::NetworkProbe network = probe_of_two();
  netdetect::Rejection rejection;
  rejection.host = 1;
  rejection.interface = "docker0";
  network.candidates.rejected = {rejection};
  network.lost.emplace(1, Error(Errc::kTimeout, "b", "silent"));
  CheckResult result = result_of_two(network);
  EXPECT_EQ(result.hosts[0].choice->address.text(), "10.0.0.1");
  EXPECT_THAT(result.hosts[0].rejected, IsEmpty());
  ASSERT_EQ(result.hosts[1].rejected.size(), 1u);
  EXPECT_EQ(result.hosts[1].error->cause, "silent");

  // The choice is repeated.
  network.most.choice.hosts[0].interface.clear();
  network.lost.at(1).cause = "still silent";
  store_network(network, result);
  EXPECT_FALSE(result.hosts[0].choice);
  EXPECT_EQ(result.hosts[1].rejected.size(), 1u);
  EXPECT_EQ(result.hosts[1].error->cause, "silent");
}

TEST(Judge, FindsNothingOnTwoHealthyHosts) {
  const launcher::NetworkProbe network = probe_of_two();
  CheckResult result = result_of_two(network);
  judge(observations(&network), CheckOptions(), result);
  EXPECT_THAT(codes(result), IsEmpty());
  EXPECT_THAT(result.notes, IsEmpty());
  EXPECT_FALSE(result.predicted);  // no link was measured
}

TEST(Judge, ReportsTheErrorOfAHost) {
  CheckResult result = result_of_two(probe_of_two());
  set_error(result.hosts[1], Error(Errc::kUnreachable, "b", "was lost"));
  judge(observations(nullptr), CheckOptions(), result);
  EXPECT_THAT(codes(result), ElementsAre("host-unreachable"));
  EXPECT_THAT(result.findings[0].hosts, ElementsAre(1));
}

TEST(Judge, SaysThatRatesAreLimited) {
  const launcher::NetworkProbe network = probe_of_two();
  CheckResult result = result_of_two(network);
  CheckOptions options;
  options.max_rate_bps = 1e6;
  judge(observations(&network), options, result);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("--max-rate")));
  EXPECT_EQ(result.links.max_rate, 1e6);
}

TEST(Judge, ComparesTheClocksOfHostsWithFacts) {
  CheckResult result = result_of_two(probe_of_two());
  Observations seen = observations(nullptr);
  seen.clock_offsets_ms = {0, 60'000};
  judge(seen, CheckOptions(), result);
  EXPECT_THAT(codes(result), IsEmpty());  // no facts, no clock
  for (auto& host : result.hosts) host.facts.emplace();
  judge(seen, CheckOptions(), result);
  EXPECT_THAT(codes(result), ElementsAre("clock-off"));
}

TEST(FactsRequest, HasTheCommandAndTheTimeoutOfItsDepth) {
  CheckOptions options;
  options.command = {"python3", "train.py"};
  EXPECT_EQ(facts_request(options).argv, options.command);
  EXPECT_EQ(facts_request(options).tool_ms, 8000u);
  options.depth = CheckDepth::kQuick;
  EXPECT_EQ(facts_request(options).tool_ms, 2500u);
}

}  // namespace
}  // namespace drun::check
