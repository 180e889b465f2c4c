#include "agent/control_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/fakes/virtual_time.h"

namespace drun::agent {
namespace {

using control::Type;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A channel on real pipes; the test is drun. The channel has the default times: a heartbeat every 5 s, and drun counts
// as gone after 30 s of silence.
class ControlChannelTest : public ::testing::Test {
 protected:
  ControlChannelTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as the agent does
    auto in = make_pipe();
    auto out = make_pipe();
    to_ = std::move(in->write);
    from_ = std::move(out->read);
    set_nonblocking(from_.get(), true);
    channel_ = std::make_unique<ControlChannel>(io_, in->read.release(), out->write.release(), [this] { ++n_lost_; });
    channel_->on<control::Signal>(Type::kSignal, [this](control::Signal m) { signals_.push_back(m.number); });
    channel_->start();
  }
  ~ControlChannelTest() override {
    channel_->stop();
    time_.run_for(seconds(0));
  }

  void write(const std::string& bytes) {
    write_all(to_.get(), bytes);
    time_.settle();
  }
  void signal(int number) {
    control::Signal m;
    m.number = number;
    write(control::encode_frame(Type::kSignal, control::encode(m)));
  }
  // The types of the frames that drun has received since the last call.
  std::vector<Type> received() {
    char bytes[4096];
    for (ssize_t n = 0; (n = ::read(from_.get(), bytes, sizeof bytes)) > 0;) {
      parser_.push(std::string_view(bytes, static_cast<std::size_t>(n)));
    }
    std::vector<Type> types;
    for (auto frame = parser_.next(); frame && *frame; frame = parser_.next()) types.push_back((*frame)->type);
    return types;
  }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  Fd to_, from_;
  control::FrameParser parser_;
  std::unique_ptr<ControlChannel> channel_;
  std::vector<int> signals_;
  int n_lost_ = 0;
};

TEST_F(ControlChannelTest, CallsTheHandlerOfAFrame) {
  signal(10);
  signal(12);
  EXPECT_THAT(signals_, ElementsAre(10, 12));
  EXPECT_EQ(n_lost_, 0);
}

TEST_F(ControlChannelTest, SendsUrgentFramesFirst) {
  channel_->outgoing().push_bulk(Type::kOutput, "text");
  channel_->outgoing().push(Type::kExited, "status");
  time_.settle();
  EXPECT_THAT(received(), ElementsAre(Type::kExited, Type::kOutput));
}

TEST_F(ControlChannelTest, AnswersPings) {
  write(control::encode_frame(Type::kPing, control::encode(control::Ping())));
  EXPECT_THAT(received(), ElementsAre(Type::kPong));
}

TEST_F(ControlChannelTest, SendsHeartbeatsAtItsInterval) {
  channel_->set_heartbeat(seconds(2), seconds(30));
  time_.run_for(seconds(7));
  EXPECT_EQ(received().size(), 3u);
}

TEST_F(ControlChannelTest, ASilentPeerLosesIt) {
  time_.run_for(seconds(29));
  EXPECT_EQ(n_lost_, 0);
  time_.run_for(seconds(2));
  EXPECT_EQ(n_lost_, 1);
  EXPECT_TRUE(channel_->outgoing().flushed());
}

TEST_F(ControlChannelTest, AnyFrameIsASignOfLife) {
  for (int i = 0; i < 3; ++i) {
    time_.run_for(seconds(20));
    write(control::encode_frame(Type::kHeartbeat, {}));
  }
  EXPECT_EQ(n_lost_, 0);
}

TEST_F(ControlChannelTest, SilenceDoesNotCountWhilePaused) {
  channel_->set_paused(true);
  time_.run_for(seconds(100));
  channel_->set_paused(false);
  time_.run_for(seconds(29));
  EXPECT_EQ(n_lost_, 0);
  time_.run_for(seconds(2));
  EXPECT_EQ(n_lost_, 1);
}

TEST_F(ControlChannelTest, EndOfTheStreamLosesIt) {
  to_.reset();
  time_.settle();
  EXPECT_EQ(n_lost_, 1);
}

TEST_F(ControlChannelTest, AFrameWithoutAHandlerLosesIt) {
  write(control::encode_frame(Type::kHello, {}));
  EXPECT_EQ(n_lost_, 1);
}

TEST_F(ControlChannelTest, ABodyThatCantBeDecodedLosesIt) {
  write(control::encode_frame(Type::kSignal, "x"));
  EXPECT_EQ(n_lost_, 1);
  EXPECT_THAT(signals_, IsEmpty());
}

TEST_F(ControlChannelTest, WhatIsQueuedAtItsStopIsStillSent) {
  channel_->outgoing().push(Type::kFinished, "");
  channel_->stop();
  time_.settle();
  EXPECT_THAT(received(), ElementsAre(Type::kFinished));
}

}  // namespace
}  // namespace drun::agent
