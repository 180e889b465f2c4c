#include "launcher/connect/connect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/fakes/fake_transport.h"
#include "tests/fakes/recording_reporter.h"
#include "tests/fakes/virtual_time.h"
#include "tests/temp_folder.h"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using transport::Phase;

// Hosts node1, node2, ... on other machines, reached by a fake transport. The start may take 20 s.
class Connect : public ::testing::Test {
 protected:
  Connect() {
    options_.start_timeout = seconds(20);
    options_.transport = &transport_;
  }
  ~Connect() override {
    for (const auto& agent : out_.agents) agent->close();
    time_.run_for(milliseconds(10));
    helper_.join();
  }

  // An agent that is there. `machine`: hosts with the same one are one machine.
  void say_hello(const std::string& name, const std::string& machine) {
    transport_.host(name).agent.write(hello(machine));
  }
  static std::string hello(const std::string& machine) {
    control::Hello m;
    m.version = control::kVersion;
    m.pid = 42;
    m.boot_id = machine;
    return std::string(control::kMagic) + control::encode_frame(control::Type::kHello, control::encode(m));
  }
  // The host executes the agent of its cache.
  void execute_cached(testing::FakeAgent& agent, const std::string& command) {
    const auto mark = command.find("DRUN-");
    agent.write(command.substr(mark, command.find('-', mark + 5) - mark) + "-CACHED /home/me/.cache/drun/agent-0\n");
  }
  // The same, and the agent dies.
  void execute_damaged(testing::FakeAgent& agent, const std::string& command) {
    execute_cached(agent, command);
    agent.exit(126, "sh: ./agent-0: Exec format error\n");
  }
  // The agent answers probes as one on `machine`. A liar says that it reaches everything, and shows the last listener
  // of the machine `victim` as its own.
  void answer_probes(const std::string& name, const std::string& machine, const std::string& victim = "") {
    auto& agent = transport_.host(name).agent;
    agent.answer = [this, &agent, machine, victim](const control::Frame& frame) {
      if (frame.type == control::Type::kProbeListen) {
        control::Port reply;
        reply.port = static_cast<std::uint16_t>(1000 + n_listeners_++);
        loopback_[machine][reply.port] = control::decode<control::ProbeListen>(frame.body)->token;
        if (!victim.empty() && !loopback_[victim].empty())
          reply.port = static_cast<std::uint16_t>(loopback_[victim].rbegin()->first);
        agent.say(control::Type::kProbeListening, reply);
      }
      if (frame.type == control::Type::kProbeRun) {
        const auto order = control::decode<control::ProbeRun>(frame.body);
        control::ProbeResults reply;
        for (const auto& target : order->targets) {
          EXPECT_TRUE(target.address == "127.0.0.1" || target.address == "::1") << target.address;
          const auto& mine = loopback_[machine];
          const auto listener = mine.find(target.port);
          const bool reached = !victim.empty() || (listener != mine.end() && listener->second == order->token);
          netdetect::ProbeResult result;
          result.outcome = reached ? netdetect::ProbeOutcome::kReached : netdetect::ProbeOutcome::kRefused;
          reply.results.push_back(std::move(result));
        }
        agent.say(control::Type::kProbeResults, reply);
      }
    };
  }
  void begin(int n_hosts) {
    for (int i = 1; i <= n_hosts; ++i) {
      Host host;
      host.name = "node" + std::to_string(i);
      host.where = "-H, item " + std::to_string(i);
      hosts_.push_back(std::move(host));
    }
    asio::co_spawn(io_, connect(), [](std::exception_ptr e) { EXPECT_FALSE(e); });
    time_.run_for(milliseconds(10));
  }
  Task<void> connect() {
    out_ = co_await connect_hosts(io_, helper_, group_, hosts_, options_, reporter_);
    is_done_ = true;
  }
  std::vector<std::string> errors() const {
    std::vector<std::string> out;
    for (const auto& error : out_.errors) out.push_back(error.message());
    return out;
  }

  asio::io_context io_{1};
  asio::thread_pool helper_{1};
  testing::VirtualTime time_{io_};
  testing::RecordingReporter reporter_;
  testing::FakeTransport transport_{io_};
  AgentChannels group_;
  ConnectOptions options_;
  std::vector<Host> hosts_;
  std::map<std::string, std::map<int, std::string>> loopback_;  // machine -> port of a listener -> its token
  int n_listeners_ = 0;
  Connected out_;
  bool is_done_ = false;
};

TEST_F(Connect, AllHostsAtOnceInTheOrderOfTheList) {
  begin(3);
  EXPECT_FALSE(is_done_);
  for (const int i : {3, 1, 2}) say_hello("node" + std::to_string(i), std::to_string(i));
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), IsEmpty());
  ASSERT_THAT(out_.agents, SizeIs(3));
  EXPECT_EQ(out_.agents[0]->name(), "node1");
  EXPECT_EQ(out_.agents[2]->name(), "node3");
  EXPECT_EQ(out_.head, -1);
  std::vector<Phase> phases;
  for (const auto& [phase, time] : out_.times[0]) phases.push_back(phase);
  EXPECT_THAT(phases, ElementsAre(Phase::kResolve, Phase::kConnect, Phase::kHandshake, Phase::kLogin, Phase::kAgent,
                                  Phase::kAgent));
}

TEST_F(Connect, HostsThatHangAreAllNamedWithTheirPhaseAtTheDeadline) {
  transport_.host("node1").hangs_in = Phase::kConnect;
  transport_.host("node2").hangs_in = Phase::kLogin;
  say_hello("node3", "3");
  begin(4);  // the agent of node4 says nothing
  time_.run_for(milliseconds(19'900));
  EXPECT_FALSE(is_done_);
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(),
              UnorderedElementsAre(HasSubstr("node1: connect: timed out"), HasSubstr("node2: login: timed out"),
                                   HasSubstr("node4: agent: no hello within 20 s")));
  EXPECT_THAT(out_.agents, IsEmpty()) << "one failure closes all";
  EXPECT_TRUE(transport_.host("node3").agent.is_closed);
}

TEST_F(Connect, AFailureHasItsCauseAndItsPlaceInTheList) {
  transport_.host("node1").fails = Error(Errc::kUnreachable, "node1", "login: permission denied (publickey)");
  begin(2);
  say_hello("node2", "2");
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  ASSERT_THAT(errors(), ElementsAre(HasSubstr("node1: login: permission denied (publickey)")));
  EXPECT_THAT(out_.errors[0].context, HasSubstr("named in -H, item 1"));
}

TEST_F(Connect, ADamagedAgentOfTheCacheIsDeliveredAgain) {
  begin(1);
  auto& host = transport_.host("node1");
  ASSERT_THAT(host.commands, SizeIs(1));
  execute_damaged(host.agent, host.commands[0]);
  time_.run_for(seconds(3));
  ASSERT_THAT(host.commands, SizeIs(2));
  EXPECT_THAT(host.commands[1], Not(HasSubstr("-CACHED")));
  EXPECT_THAT(reporter_.notes, ElementsAre(HasSubstr("node1: /home/me/.cache/drun/agent-0 did not start")));
  host.second_agent.write(hello("1"));
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(Connect, ADamagedAgentIsDeliveredAgainOnlyOnce) {
  begin(1);
  auto& host = transport_.host("node1");
  ASSERT_THAT(host.commands, SizeIs(1));
  execute_damaged(host.agent, host.commands[0]);
  time_.run_for(seconds(3));
  ASSERT_THAT(host.commands, SizeIs(2));
  host.second_agent.exit(126, "sh: Exec format error\n");
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("node1: agent: no hello")));
  EXPECT_THAT(host.commands, SizeIs(2));
}

TEST_F(Connect, AnAgentOfTheCacheThatSaysNothingIsDeliveredAgain) {
  begin(1);
  auto& host = transport_.host("node1");
  ASSERT_THAT(host.commands, SizeIs(1));
  execute_cached(host.agent, host.commands[0]);
  time_.run_for(seconds(6));
  EXPECT_THAT(host.commands, SizeIs(1));
  time_.run_for(seconds(1));
  ASSERT_THAT(host.commands, SizeIs(2));
  EXPECT_TRUE(host.agent.is_closed);
  EXPECT_THAT(reporter_.notes,
              ElementsAre(HasSubstr("agent-0 did not start, and is delivered again: agent: no hello")));
  time_.run_for(seconds(12));
  EXPECT_FALSE(is_done_);
  host.second_agent.write(hello("1"));
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(Connect, AnAgentOfTheCacheHasItsHelloTakenUpToAThirdOfTheTime) {
  begin(1);
  auto& host = transport_.host("node1");
  ASSERT_THAT(host.commands, SizeIs(1));
  execute_cached(host.agent, host.commands[0]);
  time_.run_for(seconds(6));
  host.agent.write(hello("1"));
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  time_.run_for(seconds(10));
  EXPECT_THAT(host.commands, SizeIs(1));
  EXPECT_FALSE(host.agent.is_closed);
}

// As OpenSSH's client says it of an sshd, or of one of its jump hosts, with too many logins at once.
constexpr const char* kDropped =
    "kex_exchange_identification: Connection closed by remote host\n"
    "Connection closed by UNKNOWN port 65535\n";

TEST_F(Connect, AHostWhoseSshdDropsOpensshsClientIsTriedAgain) {
  auto& host = transport_.host("node1");
  host.uses_openssh = true;
  begin(1);
  host.agent.exit(255, kDropped);
  time_.run_for(seconds(1));
  ASSERT_THAT(host.commands, SizeIs(2));
  EXPECT_FALSE(is_done_);
  host.second_agent.write(hello("1"));
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_THAT(reporter_.notes, IsEmpty());
}

TEST_F(Connect, ADropMayComeWhenADamagedAgentIsDeliveredAgain) {
  auto& host = transport_.host("node1");
  host.uses_openssh = true;
  begin(1);
  execute_damaged(host.agent, host.commands.at(0));
  host.second_agent.exit(255, kDropped);
  time_.run_for(seconds(1));
  ASSERT_THAT(host.commands, SizeIs(3));
  EXPECT_THAT(host.commands[2], Not(HasSubstr("-CACHED")));
  host.third_agent.write(hello("1"));
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(Connect, AHostThatDropsOpensshsClientEachTimeIsGivenUp) {
  auto& host = transport_.host("node1");
  host.uses_openssh = true;
  begin(1);
  for (auto* agent : {&host.agent, &host.second_agent, &host.third_agent}) agent->exit(255, kDropped);
  time_.run_for(seconds(20));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(host.commands, SizeIs(8));
  ASSERT_THAT(errors(), ElementsAre(HasSubstr("node1: ssh: Connection closed by UNKNOWN port 65535")));
  EXPECT_THAT(out_.errors[0].context, HasSubstr("ssh: kex_exchange_identification: Connection closed by remote host"));
}

TEST_F(Connect, ADropIsToldIfTheLastTryIsLate) {
  auto& host = transport_.host("node1");
  host.uses_openssh = true;
  begin(1);
  host.agent.exit(255, kDropped);
  time_.run_for(seconds(21));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(host.commands, SizeIs(2));
  ASSERT_THAT(errors(), ElementsAre(HasSubstr("node1: agent: no hello within 20 s")));
  EXPECT_THAT(out_.errors[0].context, HasSubstr("an earlier try: ssh: Connection closed by UNKNOWN port 65535"));
}

// A host that has begun to answer was reached: its words are not those of ssh.
TEST_F(Connect, AHostThatWasReachedIsNotTriedAgainForItsWords) {
  begin(1);
  auto& host = transport_.host("node1");
  host.agent.exit(255, kDropped);
  time_.run_for(seconds(3));
  EXPECT_TRUE(is_done_);
  EXPECT_THAT(host.commands, SizeIs(1));
}

TEST_F(Connect, AHostWithoutAnAgentIsNotTriedAgain) {
  begin(1);
  auto& host = transport_.host("node1");
  host.agent.exit(1, "This account is currently not available.\n");
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(host.commands, SizeIs(1));
}

TEST_F(Connect, ACheckGoesOnWithTheHostsThatCanBeReached) {
  options_.keep_reachable = true;
  transport_.host("node1").fails = Error(Errc::kUnreachable, "node1", "login: permission denied (publickey)");
  begin(2);
  say_hello("node2", "2");
  time_.run_for(milliseconds(10));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), SizeIs(1));
  ASSERT_THAT(out_.agents, SizeIs(1));
  EXPECT_EQ(out_.agents[0]->name(), "node2");
  EXPECT_FALSE(transport_.host("node2").agent.is_closed);
}

TEST_F(Connect, AnErrorInTheSshConfigEndsACheckBeforeAnyHostIsTried) {
  const drun::testing::TempFolder folder;
  folder.write("config", "Host node2\n  Port many\n");
  options_.ssh.config_file = folder.path("config");
  options_.keep_reachable = true;
  begin(2);
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(errors(), ElementsAre(folder.path("config") + ":2: not a port: 'many'"));
  EXPECT_EQ(out_.errors[0].code, Errc::kUsage);
  EXPECT_THAT(transport_.host("node1").commands, IsEmpty());
}

TEST_F(Connect, NamesOfOneMachineAreOneHostWithTheSlotsOfBoth) {
  begin(2);
  say_hello("node1", "same");
  say_hello("node2", "same");
  for (const char* name : {"node1", "node2"}) answer_probes(name, "same");
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  ASSERT_THAT(out_.agents, SizeIs(1));
  EXPECT_EQ(out_.agents[0]->host().slots, 2);
  EXPECT_THAT(reporter_.notes, ElementsAre("node2 and node1 are the same machine: it has 2 slots now"));
  EXPECT_TRUE(transport_.host("node2").agent.is_closed);
}

TEST_F(Connect, AHostThatClaimsToBeAnotherGetsNothingOfIt) {
  begin(3);
  for (const char* name : {"node1", "node2", "node3"}) say_hello(name, "same");
  answer_probes("node1", "another", "same");
  answer_probes("node2", "same");
  answer_probes("node3", "same");
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  ASSERT_THAT(out_.agents, SizeIs(2));
  EXPECT_EQ(out_.agents[0]->name(), "node1");
  EXPECT_EQ(out_.agents[0]->host().slots, 1);
  EXPECT_EQ(out_.agents[1]->name(), "node2");
  EXPECT_EQ(out_.agents[1]->host().slots, 2) << "node3 is node2";
  EXPECT_NE(out_.agents[0]->hello().net_namespace, out_.agents[1]->hello().net_namespace);
  EXPECT_THAT(reporter_.warnings, ElementsAre(HasSubstr("node2 and node1 say that they are one machine")));
}

TEST_F(Connect, AClaimIsJudgedAlsoWhereTheLiarComesLast) {
  begin(2);
  for (const char* name : {"node1", "node2"}) say_hello(name, "same");
  answer_probes("node1", "same");
  answer_probes("node2", "another", "same");
  time_.run_for(seconds(3));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(out_.agents, SizeIs(2));
}

TEST_F(Connect, AClaimThatNobodyProvesInTimeIsNone) {
  begin(2);
  for (const char* name : {"node1", "node2"}) say_hello(name, "same");
  answer_probes("node1", "same");
  time_.run_for(seconds(4));
  EXPECT_FALSE(is_done_);
  time_.run_for(seconds(2));
  ASSERT_TRUE(is_done_);
  EXPECT_THAT(out_.agents, SizeIs(2));
}

TEST_F(Connect, AStopOfDrunDoesNotShortenTheStart) {
  begin(1);
  time_.run_for(seconds(15));
  Clock::was_stopped_for(seconds(60));  // as after Ctrl-Z: the clock stands still
  time_.run_for(seconds(60));
  EXPECT_FALSE(is_done_);
  say_hello("node1", "1");
  time_.run_for(milliseconds(10));
  EXPECT_TRUE(is_done_);
  EXPECT_THAT(errors(), IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
