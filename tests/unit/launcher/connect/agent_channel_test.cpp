#include "launcher/connect/agent_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/fakes/fake_channel.h"
#include "tests/fakes/virtual_time.h"
#include "tests/hostile_text.h"

namespace drun::launcher {
namespace {

using control::Type;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A link with its own agent. Both sides have the default times: a heartbeat every 5 s, a warning after 10 s of silence,
// death after 30 s.
struct LinkedAgent {
  LinkedAgent(asio::io_context& io, AgentChannels& group, const std::string& name) : agent(io) {
    Host host;
    host.name = name;
    link = std::make_unique<AgentChannel>(io, group, std::move(host), agent.channel(), control::Hello(),
                                          control::FrameParser());
    link->on([this](AgentChannel&, control::Frame frame) { frames.push_back(std::move(frame)); },
             [this](AgentChannel&, Error error) { lost.push_back(error.message()); },
             [this](AgentChannel&, seconds silence) { silences.push_back(silence.count()); });
    link->start();
  }

  testing::FakeAgent agent;
  std::unique_ptr<AgentChannel> link;
  std::vector<control::Frame> frames;
  std::vector<std::string> lost;
  std::vector<long> silences;
};

class AgentChannelTest : public ::testing::Test {
 protected:
  ~AgentChannelTest() override {
    node_.link->close();
    time_.run_for(seconds(0));
  }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  AgentChannels group_;
  LinkedAgent node_{io_, group_, "node1"};
};

TEST_F(AgentChannelTest, SilenceIsAWarningAndThenTheEnd) {
  time_.run_for(milliseconds(9900));
  EXPECT_THAT(node_.silences, IsEmpty());
  time_.run_for(milliseconds(700));
  EXPECT_THAT(node_.silences, ElementsAre(10));
  time_.run_for(milliseconds(19'300));
  EXPECT_THAT(node_.lost, IsEmpty());
  time_.run_for(milliseconds(600));
  EXPECT_THAT(node_.lost, ElementsAre("node1: silent for 30 s: the host is down, frozen or cut off"));
  EXPECT_TRUE(node_.link->lost_in_silence());
  EXPECT_THAT(node_.silences, ElementsAre(10)) << "one warning for one silence";
}

TEST_F(AgentChannelTest, AnyFrameEndsASilence) {
  for (int i = 0; i < 20; ++i) {
    time_.run_for(seconds(8));
    node_.agent.say(Type::kHeartbeat);
  }
  EXPECT_THAT(node_.silences, IsEmpty());
  EXPECT_THAT(node_.lost, IsEmpty());
  time_.run_for(seconds(11));
  node_.agent.say(Type::kHeartbeat);
  time_.run_for(seconds(11));
  EXPECT_EQ(node_.silences.size(), 2u) << "each silence has its warning";
}

TEST_F(AgentChannelTest, DrunSendsHeartbeats) {
  for (int i = 0; i < 12; ++i) {
    time_.run_for(seconds(5));
    node_.agent.say(Type::kHeartbeat);
  }
  EXPECT_NEAR(static_cast<double>(node_.agent.count(Type::kHeartbeat)), 11, 1);
}

TEST_F(AgentChannelTest, TheUsersTimesReplaceTheDefault) {
  HeartbeatTimes times;
  times.interval = milliseconds(500);
  times.warn = seconds(1);
  times.timeout = seconds(3);
  node_.link->set_times(times);
  time_.run_for(milliseconds(2900));
  EXPECT_THAT(node_.lost, IsEmpty());
  EXPECT_GE(node_.agent.count(Type::kHeartbeat), 4u);
  time_.run_for(milliseconds(600));
  EXPECT_THAT(node_.lost, ElementsAre(HasSubstr("silent for 3 s")));
}

TEST_F(AgentChannelTest, AStopOfDrunItselfIsNoSilenceOfTheHost) {
  time_.run_for(seconds(8));
  Clock::was_stopped_for(-seconds(3600));  // drun did not run for an hour, and finds what came meanwhile
  node_.agent.say(Type::kHeartbeat);
  time_.run_for(seconds(5));
  EXPECT_THAT(node_.lost, IsEmpty());
}

// As by SIGSTOP, of which drun only sees that time has passed.
TEST_F(AgentChannelTest, AJobThatWaitsNoLongerDoesNotTakeAStopOfDrunForSilence) {
  HeartbeatTimes times;
  times.warn = seconds(1);
  node_.link->set_times(times);
  time_.run_for(milliseconds(100));
  std::this_thread::sleep_for(milliseconds(2700));
  node_.link->lose_if_silent();
  EXPECT_THAT(node_.lost, IsEmpty());
  time_.run_for(milliseconds(1100));
  node_.link->lose_if_silent();
  EXPECT_THAT(node_.lost, ElementsAre(HasSubstr("silent for ")));
}

TEST_F(AgentChannelTest, TheEndOfTheConnectionHasTheLastWordsOfTheOtherSide) {
  node_.agent.exit(255, "Connection to node1 closed by remote host.\n");
  time_.run_for(milliseconds(10));
  EXPECT_THAT(node_.lost, ElementsAre(HasSubstr("the connection to the agent ended")));
  EXPECT_THAT(node_.link->lost_error().context, HasSubstr("Connection to node1 closed by remote host."));
  EXPECT_FALSE(node_.link->lost_in_silence());
}

TEST_F(AgentChannelTest, EachOfTheLastWordsIsALineThatSaysWhoseItIs) {
  node_.agent.exit(1, testing::kHostile);
  time_.run_for(milliseconds(10));
  EXPECT_EQ(node_.link->lost_error().context,
            "its last words: why ?]0;EVIL??[2J ?31m ?32m ? ?\nits last words: | forged");
}

TEST_F(AgentChannelTest, BytesThatAreNoFrameAreTheEnd) {
  node_.agent.write("\xff\xff\xff\xff garbage");
  time_.run_for(milliseconds(10));
  ASSERT_EQ(node_.lost.size(), 1u);
  EXPECT_EQ(node_.link->lost_error().code, Errc::kProtocol);
  EXPECT_THAT(node_.lost[0], HasSubstr("node1"));
}

TEST_F(AgentChannelTest, FramesAfterTheEndAreNotDelivered) {
  node_.agent.say(Type::kNotice, control::Text{"first"});
  node_.agent.write("\xff\xff\xff\xff garbage");
  node_.agent.say(Type::kNotice, control::Text{"second"});
  time_.run_for(milliseconds(10));
  EXPECT_EQ(node_.frames.size(), 1u);
  EXPECT_EQ(node_.lost.size(), 1u);
}

Task<void> ask(AgentChannel& link, seconds limit, std::shared_ptr<std::string> out) {
  const Deadline deadline = Clock::now() + limit;
  const auto reply = co_await link.request(Type::kPrepare, "", Type::kPrepared, "prepare", deadline);
  *out = reply ? "answered " + reply->body : reply.error().message();
}

TEST_F(AgentChannelTest, ARequestGetsItsReplyAndNothingElse) {
  node_.agent.answer = [&](const control::Frame& frame) {
    if (frame.type != Type::kPrepare) return;
    node_.agent.say(Type::kNotice, control::Text{"by the way"});
    node_.agent.say_body(Type::kPrepared, "yes");
  };
  auto out = std::make_shared<std::string>();
  asio::co_spawn(io_, ask(*node_.link, seconds(10), out), [](std::exception_ptr) {});
  time_.run_for(milliseconds(10));
  EXPECT_EQ(*out, "answered yes");
  ASSERT_EQ(node_.frames.size(), 1u);
  EXPECT_EQ(node_.frames[0].type, Type::kNotice);
}

TEST_F(AgentChannelTest, ARequestWhoseReplyIsTooLargeFailsAlone) {
  const auto out = std::make_shared<std::string>();
  asio::co_spawn(io_, ask(*node_.link, seconds(10), out), [](std::exception_ptr) {});
  time_.run_for(milliseconds(10));
  node_.agent.say_body(Type::kPrepared, std::string(control::kMaxFrame, 'x'));
  time_.run_for(milliseconds(10));
  EXPECT_EQ(*out, "node1: prepare: its agent's reply would be larger than 16 MiB");
  EXPECT_THAT(node_.lost, IsEmpty());
}

TEST_F(AgentChannelTest, AnOrderThatIsTooLargeIsToldBeforeTheAgentFails) {
  node_.link->send(Type::kSpawn, std::string(control::kMaxFrame, 'x'));
  EXPECT_THAT(node_.lost, ElementsAre("node1: drun's order to it would be larger than 16 MiB"));
  EXPECT_EQ(node_.agent.count(Type::kSpawn), 0u);
}

TEST_F(AgentChannelTest, ARequestWithoutReplyFailsAtItsDeadlineAndNamesHostAndPhase) {
  auto out = std::make_shared<std::string>();
  asio::co_spawn(io_, ask(*node_.link, seconds(7), out), [](std::exception_ptr) {});
  time_.run_for(milliseconds(6900));
  EXPECT_EQ(*out, "");
  time_.run_for(milliseconds(200));
  EXPECT_EQ(*out, "node1: prepare: its agent gave no answer within 7 s");
}

TEST_F(AgentChannelTest, ARequestFailsWithTheLossOfItsHost) {
  auto out = std::make_shared<std::string>();
  asio::co_spawn(io_, ask(*node_.link, seconds(100), out), [](std::exception_ptr) {});
  time_.run_for(seconds(1));
  node_.agent.exit(1);
  time_.run_for(milliseconds(10));
  EXPECT_EQ(*out, "node1: prepare: the connection to the agent ended");
}

TEST_F(AgentChannelTest, AHostThatReadsNothingIsLostInSilenceToo) {
  node_.agent.stop_reading();
  for (int i = 0; i < 1000; ++i) node_.link->send_bulk(Type::kStdin, std::string(1000, 'x'));
  time_.run_for(seconds(31));
  EXPECT_THAT(node_.lost, ElementsAre(HasSubstr("silent for 30 s")));
}

Task<void> end_link(AgentChannel& link, std::shared_ptr<bool> ended) {
  co_await link.end();
  *ended = true;
}

TEST_F(AgentChannelTest, AnAgentWithoutWorkersHasTwoSecondsToEnd) {
  auto ended = std::make_shared<bool>(false);
  asio::co_spawn(io_, end_link(*node_.link, ended), [](std::exception_ptr) {});
  time_.run_for(milliseconds(1900));
  EXPECT_TRUE(node_.agent.has_eof);
  EXPECT_FALSE(node_.agent.is_closed);
  EXPECT_FALSE(*ended);
  time_.run_for(milliseconds(200));
  EXPECT_TRUE(*ended);
  EXPECT_TRUE(node_.agent.is_closed);
  EXPECT_THAT(node_.lost, IsEmpty()) << "an end that was asked for is no loss";
}

TEST_F(AgentChannelTest, AnAgentThatEndsIsNotWaitedFor) {
  auto ended = std::make_shared<bool>(false);
  asio::co_spawn(io_, end_link(*node_.link, ended), [](std::exception_ptr) {});
  time_.run_for(milliseconds(50));
  node_.agent.exit(0);
  time_.run_for(milliseconds(50));
  EXPECT_TRUE(*ended);
}

TEST_F(AgentChannelTest, AnAgentWithWorkersIsClosedAtOnce) {
  node_.link->send(Type::kSpawn, "");
  auto ended = std::make_shared<bool>(false);
  asio::co_spawn(io_, end_link(*node_.link, ended), [](std::exception_ptr) {});
  time_.run_for(milliseconds(10));
  EXPECT_TRUE(*ended);
}

Task<void> pause(AgentChannels& group, std::shared_ptr<bool> paused) {
  co_await group.pause();
  *paused = true;
}

TEST_F(AgentChannelTest, AStopReachesEveryLinkAndThoseThatComeWhileItLasts) {
  LinkedAgent other(io_, group_, "node2");
  auto paused = std::make_shared<bool>(false);
  asio::co_spawn(io_, pause(group_, paused), [](std::exception_ptr) {});
  time_.run_for(milliseconds(100));
  EXPECT_TRUE(*paused);
  LinkedAgent late(io_, group_, "node3");
  time_.run_for(milliseconds(10));
  for (const auto* one : {&node_, &other, &late}) EXPECT_EQ(one->agent.count(Type::kPause), 1u);
  group_.resume();
  time_.run_for(milliseconds(10));
  for (const auto* one : {&node_, &other, &late}) EXPECT_EQ(one->agent.count(Type::kResume), 1u);
  for (auto* one : {&other, &late}) one->link->close();
  time_.run_for(milliseconds(10));
}

TEST_F(AgentChannelTest, AStopWaitsHalfASecondForAHostThatReadsNothing) {
  node_.agent.stop_reading();
  auto paused = std::make_shared<bool>(false);
  asio::co_spawn(io_, pause(group_, paused), [](std::exception_ptr) {});
  time_.run_for(milliseconds(450));
  EXPECT_FALSE(*paused);
  time_.run_for(milliseconds(100));
  EXPECT_TRUE(*paused);
}

}  // namespace
}  // namespace drun::launcher
