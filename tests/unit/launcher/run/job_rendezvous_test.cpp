#include "launcher/run/job_rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/fakes/fake_channel.h"
#include "tests/fakes/recording_reporter.h"
#include "tests/fakes/virtual_time.h"

namespace drun::launcher {
namespace {

using control::Type;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Two ranks on each of three hosts: the head, one that reaches it and one that does not. The agents are fakes.
class JobRendezvousTest : public ::testing::Test {
 protected:
  JobRendezvousTest() : supervisor_(io_, reporter_, seconds(5)), rendezvous_(io_, supervisor_, "0123456789abcdef") {}

  // The head is host `head`, -1: none of them. Hosts of one boot id are in one network namespace.
  void start(int head, const std::vector<std::string>& boot_ids, bool for_horovod = false) {
    std::vector<Host> hosts(3);
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      hosts[i].name = "node" + std::to_string(i);
      hosts[i].slots = 2;
      control::Hello hello;
      hello.boot_id = boot_ids[i];
      agents_.push_back(std::make_unique<testing::FakeAgent>(io_));
      channels_.push_back(std::make_unique<AgentChannel>(io_, group_, hosts[i], agents_.back()->channel(),
                                                         std::move(hello), control::FrameParser()));
      channels_.back()->on([](AgentChannel&, control::Frame) {}, [](AgentChannel&, const Error&) {},
                           [](AgentChannel&, seconds) {});
      channels_.back()->start();
      hosts_.push_back(channels_.back().get());
      netdetect::HostChoice choice;
      choice.address = netdetect::parse_address(i == 0 ? head_address_ : "10.0.0." + std::to_string(i));
      network_.hosts.push_back(std::move(choice));
    }
    network_.reach = {{1, 1, 1}, {1, 1, 1}, {0, 1, 1}};
    for (const auto& agent : agents_) {
      agent->answer = [this, to = agent.get()](const control::Frame& frame) {
        if (frame.type != Type::kRelayListen) return;
        control::Port port = relay_;
        if (control::decode<control::RelayListen>(frame.body)->for_horovod) ++port.port;
        to->say(Type::kRelayListening, port);
      };
    }
    OpenFiles files;
    files.serves_horovod = for_horovod;
    ASSERT_TRUE(rendezvous_.start(hosts_, head, *place(hosts, 0), network_, files, {}));
  }
  ~JobRendezvousTest() override {
    rendezvous_.stop();
    for (const auto& channel : channels_) channel->close();
    time_.run_for(seconds(1));
  }

  // The error of the host's route, "" if there is a route.
  std::string route_of(std::size_t host) {
    std::string error = "not chosen";
    asio::co_spawn(io_, choose(rendezvous_, host, error), [](std::exception_ptr e) { EXPECT_FALSE(e); });
    time_.run_until([&] { return error != "not chosen"; }, seconds(60));
    return error;
  }
  static Task<void> choose(JobRendezvous& rendezvous, std::size_t host, std::string& error) {
    auto chosen = co_await rendezvous.choose_route(host, Clock::now() + seconds(30));
    error = chosen ? "" : chosen.error().message();
  }
  std::string told(std::size_t host) {
    const auto& handout = rendezvous_.handouts()[host];
    return host_port(handout.rendezvous_address, handout.rendezvous_port);
  }

  // Horovod's route of the host: the address without the token, and the port.
  std::string told_horovod(std::size_t host) {
    const HorovodRoute& route = rendezvous_.horovod_routes()[host];
    const auto slash = route.address.find('/');
    EXPECT_EQ(route.address.size() - slash, 33u) << route.address;
    EXPECT_EQ(route.address.substr(slash),
              rendezvous_.horovod_routes()[0].address.substr(rendezvous_.horovod_routes()[0].address.find('/')));
    EXPECT_EQ(route.address.substr(0, slash),
              route.address.substr(0, route.address.find(':') + 1) + std::to_string(route.port));
    return route.address.substr(0, slash);
  }

  std::string head_address_ = "127.0.0.1";
  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  testing::RecordingReporter reporter_;
  AgentChannels group_;
  std::vector<std::unique_ptr<testing::FakeAgent>> agents_;
  std::vector<std::unique_ptr<AgentChannel>> channels_;
  std::vector<AgentChannel*> hosts_;
  netdetect::Choice network_;
  control::Port relay_{"127.0.0.1", 4711, ""};
  Supervisor supervisor_;
  JobRendezvous rendezvous_;
};

TEST_F(JobRendezvousTest, AHostThatReachesTheHeadConnectsToItAndAnotherToItsAgent) {
  start(0, {"a", "b", "c"});
  for (std::size_t host = 0; host < 3; ++host) EXPECT_EQ(route_of(host), "");
  EXPECT_THAT(told(0), HasSubstr("127.0.0.1:"));
  EXPECT_EQ(told(1), told(0));
  EXPECT_EQ(told(2), "127.0.0.1:4711");
  EXPECT_EQ(agents_[1]->count(Type::kRelayListen), 0u);
}

TEST_F(JobRendezvousTest, AHostInTheHeadsNetworkNamespaceNeedsNoProbe) {
  start(0, {"a", "b", "a"});
  EXPECT_EQ(route_of(0), "");
  EXPECT_EQ(route_of(2), "");
  EXPECT_EQ(told(2), told(0));
}

TEST_F(JobRendezvousTest, WithoutTheHeadInTheListEveryHostIsRelayed) {
  start(-1, {"a", "b", "c"});
  EXPECT_EQ(route_of(2), "");
  EXPECT_EQ(told(2), "127.0.0.1:4711");
}

TEST_F(JobRendezvousTest, ARelayThatCantListenIsTheHostsError) {
  relay_.error = "no port is free";
  start(0, {"a", "b", "c"});
  EXPECT_THAT(route_of(2), HasSubstr("node2: relay: no port is free"));
}

TEST_F(JobRendezvousTest, HorovodsIsServedOnlyIfItIsAskedFor) {
  start(0, {"a", "b", "c"});
  EXPECT_EQ(route_of(2), "");
  EXPECT_EQ(agents_[2]->count(Type::kRelayListen), 1u);
  EXPECT_TRUE(rendezvous_.horovod_routes().empty());
}

TEST_F(JobRendezvousTest, HorovodsHasTheSameRoutesOnAPortOfItsOwn) {
  start(0, {"a", "b", "c"}, true);
  for (std::size_t host = 0; host < 3; ++host) EXPECT_EQ(route_of(host), "");
  EXPECT_THAT(told_horovod(0), HasSubstr("127.0.0.1:"));
  EXPECT_NE(told_horovod(0), told(0));
  EXPECT_EQ(told_horovod(1), told_horovod(0));
  EXPECT_EQ(told_horovod(2), "127.0.0.1:4712");
  EXPECT_EQ(agents_[1]->count(Type::kRelayListen), 0u);
  EXPECT_EQ(rendezvous_.horovod_routes()[2].host_name, "node2");
}

TEST_F(JobRendezvousTest, HorovodsIsRelayedWithoutTheHeadInTheList) {
  start(-1, {"a", "b", "c"}, true);
  EXPECT_EQ(route_of(0), "");
  EXPECT_EQ(told_horovod(0), "127.0.0.1:4712");
}

TEST_F(JobRendezvousTest, HorovodsIsRelayedAlsoToTheHeadIfTheNetworkIsIPv6) {
  head_address_ = "::1";
  start(0, {"a", "b", "c"}, true);
  EXPECT_EQ(route_of(0), "");
  EXPECT_THAT(told(0), HasSubstr("[::1]:"));
  EXPECT_EQ(told_horovod(0), "127.0.0.1:4712");
  relay_.address = "::1";
  EXPECT_THAT(route_of(1), HasSubstr("node1: relay: Horovod needs IPv4"));
}

TEST(MembersOf, GivesEachRankItsPlace) {
  std::vector<Host> hosts(2);
  hosts[0].name = "a";
  hosts[1].name = "b";
  for (auto& host : hosts) host.slots = 2;
  const auto members = members_of(*place(hosts, 0), {"a", "b"});
  ASSERT_EQ(members.size(), 4u);
  EXPECT_EQ(members[3].rank, 3);
  EXPECT_EQ(members[3].local_rank, 1);
  EXPECT_EQ(members[3].cross_rank, 1);
  EXPECT_EQ(members[3].host_index, 1);
  EXPECT_EQ(members[3].host, "b");
}

}  // namespace
}  // namespace drun::launcher
