#include "launcher/network/link_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "netdetect/interface.h"
#include "tests/fakes/fake_channel.h"
#include "tests/fakes/virtual_time.h"

namespace drun::launcher {
namespace {

using control::Type;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two hosts, 10.0.0.1 and 10.0.0.2, whose agents the test plays. Ports are 5000 and 5001.
class LinkRequestsTest : public ::testing::Test {
 protected:
  LinkRequestsTest() {
    ::signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; ++i) {
      Host host;
      host.name = "h" + std::to_string(i);
      agents_.push_back(std::make_unique<testing::FakeAgent>(io_));
      channels_.push_back(std::make_unique<AgentChannel>(io_, group_, std::move(host), agents_.back()->channel(),
                                                         control::Hello(), control::FrameParser()));
      channels_.back()->start();
      netdetect::HostChoice choice;
      choice.address = netdetect::parse_address("10.0.0." + std::to_string(i + 1));
      choice_.hosts.push_back(choice);
      answer_listen(i, static_cast<std::uint16_t>(5000 + i), "");
    }
    choice_.reach = {{1, 1}, {1, 1}};
  }
  ~LinkRequestsTest() override {
    for (auto& channel : channels_) channel->close();
    time_.run_for(seconds(0));
  }

  void answer_listen(int host, std::uint16_t port, std::string error) {
    testing::FakeAgent& agent = *agents_[static_cast<std::size_t>(host)];
    agent.answer = [&agent, port, error = std::move(error)](const control::Frame& frame) {
      if (frame.type != Type::kLinkListen) return;
      control::Port reply;
      reply.port = port;
      reply.error = error;
      agent.say(Type::kLinkListening, reply);
    };
  }

  void run(Task<void> task, seconds limit = seconds(60)) {
    bool ended = false;
    asio::co_spawn(io_, std::move(task), [&ended](const std::exception_ptr& e) {
      if (e) std::rethrow_exception(e);
      ended = true;
    });
    EXPECT_TRUE(time_.run_until([&ended] { return ended; }, limit));
  }

  void make(std::uint64_t max_rate = 0) {
    std::vector<AgentChannel*> hosts;
    for (const auto& channel : channels_) hosts.push_back(channel.get());
    requests_ = std::make_unique<LinkRequests>(io_, std::move(hosts), choice_, max_rate);
    run(listen(*requests_, notes_));
  }
  static Task<void> listen(LinkRequests& requests, std::vector<std::string>& notes) {
    notes = co_await requests.listen(Clock::now() + seconds(10));
  }

  // The target of the last order to this agent.
  netdetect::LinkTarget ordered(int host) const {
    const auto order = agents_[static_cast<std::size_t>(host)]->last<control::LinkRun>(Type::kLinkRun);
    return order.targets.empty() ? netdetect::LinkTarget() : order.targets[0];
  }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  AgentChannels group_;
  std::vector<std::unique_ptr<testing::FakeAgent>> agents_;
  std::vector<std::unique_ptr<AgentChannel>> channels_;
  netdetect::Choice choice_;
  std::vector<std::string> notes_;
  std::unique_ptr<LinkRequests> requests_;
  netdetect::Link link_{0, 1, {}, {}, 0, 0, 0, 0, false};
};

netdetect::LinkTarget streams() {
  netdetect::LinkTarget wish;
  wish.n_streams = 1;
  wish.time_ms = 150;
  return wish;
}

netdetect::LinkResult moved(std::uint32_t id, double forward, double backward) {
  netdetect::LinkResult result;
  result.id = id;
  result.forward.n_streams = result.backward.n_streams = 1;
  result.forward.bits_per_second = forward;
  result.backward.bits_per_second = backward;
  return result;
}

TEST_F(LinkRequestsTest, TheSourceIsTheChosenAddressIfItIsOfTheSameFamily) {
  make();
  EXPECT_EQ(requests_->target_of(1, 0, streams()).source, "10.0.0.2");
  choice_.hosts[1].address = netdetect::parse_address("fd00::2");
  make();
  EXPECT_EQ(requests_->target_of(1, 0, streams()).address, "10.0.0.1");
  EXPECT_EQ(requests_->target_of(1, 0, streams()).source, "");
  EXPECT_EQ(requests_->target_of(0, 1, streams()).address, "fd00::2");
  EXPECT_EQ(requests_->target_of(0, 1, streams()).source, "");
}

TEST_F(LinkRequestsTest, AnAgentThatCannotListenIsNamedOnce) {
  answer_listen(1, 0, "no ports");
  make();
  EXPECT_THAT(notes_, ElementsAre("h1: links: no ports"));
  EXPECT_TRUE(requests_->connects(1, 0));
  EXPECT_FALSE(requests_->connects(0, 1));
  EXPECT_TRUE(requests_->measurable(0, 1));
  run(listen(*requests_, notes_));
  EXPECT_THAT(notes_, IsEmpty());  // not asked again
}

TEST_F(LinkRequestsTest, TheHostThatCanConnectMeasuresBothDirections) {
  choice_.reach[0][1] = 0;
  make();
  agents_[1]->answer = [this](const control::Frame& frame) {
    if (frame.type != Type::kLinkRun) return;
    control::LinkResults reply;
    reply.results = {moved(ordered(1).id, 9e8, 8e8)};
    agents_[1]->say(Type::kLinkResults, reply);
  };
  run(requests_->measure_pair(link_, streams(), Clock::now() + seconds(5)));
  EXPECT_EQ(ordered(1).address, "10.0.0.1");
  EXPECT_EQ(ordered(1).port, 5000);
  EXPECT_EQ(ordered(1).source, "10.0.0.2");
  EXPECT_EQ(link_.backward.rates.at(0).bits_per_second, 9e8);
  EXPECT_EQ(link_.forward.rates.at(0).bits_per_second, 8e8);
}

TEST_F(LinkRequestsTest, ALateReplyToAnEarlierOrderIsSkipped) {
  make();
  run(requests_->measure_pair(link_, streams(), Clock::now() + seconds(5)));
  EXPECT_THAT(link_.forward.error, HasSubstr("h0"));  // no reply
  const std::uint32_t late = ordered(0).id;
  // The right one may come in the same read.
  agents_[0]->answer = [this, late](const control::Frame& frame) {
    if (frame.type != Type::kLinkRun) return;
    for (const auto& result : {moved(late, 1, 1), moved(ordered(0).id, 9e8, 9e8)}) {
      control::LinkResults reply;
      reply.results = {result};
      agents_[0]->say(Type::kLinkResults, reply);
    }
  };
  netdetect::Link again;
  again.b = 1;
  run(requests_->measure_pair(again, streams(), Clock::now() + seconds(5)));
  EXPECT_EQ(again.forward.rates.at(0).bits_per_second, 9e8);
}

TEST_F(LinkRequestsTest, APairOfALostHostHasAnErrorAndNoOrder) {
  make();
  agents_[1]->exit(1);
  time_.run_for(seconds(0));
  run(requests_->measure_pair(link_, streams(), Clock::now() + seconds(5)));
  EXPECT_EQ(link_.forward.error, "h1 was lost");
  EXPECT_EQ(link_.backward.error, "h1 was lost");
  EXPECT_EQ(agents_[0]->count(Type::kLinkRun), 0u);
}

TEST_F(LinkRequestsTest, LossesAreCountedOnlyWhereDataCameThrough) {
  make(2'000'000);
  run(requests_->measure_loss(link_, streams(), Clock::now() + seconds(5)));
  EXPECT_EQ(agents_[0]->count(Type::kLinkRun), 0u);

  link_.forward.rates.resize(1);
  link_.forward.rates[0].bits_per_second = 1e9;
  agents_[0]->answer = [this](const control::Frame& frame) {
    if (frame.type != Type::kLinkRun) return;
    control::LinkResults reply;
    reply.results = {moved(ordered(0).id, 2e6, 2e6)};
    agents_[0]->say(Type::kLinkResults, reply);
  };
  run(requests_->measure_loss(link_, streams(), Clock::now() + seconds(5)));
  EXPECT_EQ(ordered(0).max_rate, 2'000'000u);  // --max-rate is lower
  EXPECT_GT(ordered(0).segment_bytes, 0);
  EXPECT_EQ(link_.forward.paced.bits_per_second, 2e6);
  EXPECT_EQ(link_.forward.rates.size(), 1u);
}

}  // namespace
}  // namespace drun::launcher
