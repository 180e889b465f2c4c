#include "agent/stdin_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <numeric>
#include <thread>
#include <vector>

namespace drun::agent {
namespace {

constexpr std::size_t kPipe = 64u << 10;

// A pump on a real pipe, whose reader is the test.
class StdinPumpFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as the agent does
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe.has_value());
    read_end_ = std::move(pipe->read);
    pump_ = std::make_unique<StdinPump>(
        io_, std::move(pipe->write), false, [this](std::size_t n_bytes) { consumed_.push_back(n_bytes); },
        [this] { ++n_refused_; });
    tasks_.spawn(pump_->run());
  }
  void TearDown() override {
    pump_->close();
    run_for(std::chrono::seconds(10));
    EXPECT_EQ(tasks_.running(), 0);
  }
  void run_for(std::chrono::milliseconds time) {
    io_.restart();
    io_.run_for(time);
  }
  // Waits for the pump's next report of consumed bytes.
  std::size_t next_consumed() {
    const std::size_t before = consumed_.size();
    const Deadline deadline = Clock::now() + std::chrono::seconds(10);
    io_.restart();
    while (consumed_.size() == before && Clock::now() < deadline) io_.run_one_until(deadline);
    EXPECT_EQ(consumed_.size(), before + 1);
    return consumed_.back();
  }
  std::size_t sum() const { return std::accumulate(consumed_.begin(), consumed_.end(), std::size_t{0}); }
  void wait_for_sum(std::size_t n_bytes) {
    const Deadline deadline = Clock::now() + std::chrono::seconds(10);
    io_.restart();
    while (sum() != n_bytes && Clock::now() < deadline) io_.run_one_until(deadline);
    EXPECT_EQ(sum(), n_bytes);
  }
  void read(std::size_t n_bytes) {
    std::string buffer(n_bytes, '\0');
    ASSERT_EQ(::read(read_end_.get(), buffer.data(), n_bytes), static_cast<ssize_t>(n_bytes));
  }

  asio::io_context io_;
  TaskGroup tasks_{io_.get_executor()};
  Fd read_end_;
  std::unique_ptr<StdinPump> pump_;
  std::vector<std::size_t> consumed_;
  int n_refused_ = 0;
};

// A program on the terminal that reads to the end, as cat does.
std::vector<std::string> read_terminal(const std::vector<std::string>& delivered) {
  int master = -1, slave = -1;
  EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const Fd program(slave), open(master);  // the pump closes its own
  asio::io_context io;
  StdinPump pump(
      io, Fd(::fcntl(master, F_DUPFD_CLOEXEC, 0)), true, [](std::size_t) {}, [] {});
  for (const auto& bytes : delivered) pump.deliver(bytes);
  pump.end();
  TaskGroup tasks(io.get_executor());
  tasks.spawn(pump.run());
  std::thread pumping([&io] { io.run(); });
  std::vector<std::string> out;
  char buffer[100];
  for (;;) {
    pollfd p{program.get(), POLLIN, 0};
    if (::poll(&p, 1, 5000) != 1) {
      out.emplace_back("it waits for ever");
      break;
    }
    const ssize_t n = ::read(program.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    out.emplace_back(buffer, static_cast<std::size_t>(n));
  }
  pumping.join();
  return out;
}

TEST(StdinPumpOfATerminal, EndsTheInputAlsoWithoutAFinalNewline) {
  EXPECT_EQ(read_terminal({"abc\n"}), (std::vector<std::string>{"abc\n"}));
  EXPECT_EQ(read_terminal({"abc\n", "de"}), (std::vector<std::string>{"abc\n", "de"}));
  EXPECT_EQ(read_terminal({}), (std::vector<std::string>{}));
}

TEST_F(StdinPumpFixture, WhatThePipeTakesAtOnceIsToldAtOnce) {
  pump_->deliver("abc");
  pump_->deliver(std::string(1000, 'x'));
  EXPECT_EQ(next_consumed(), 3u);
  EXPECT_EQ(next_consumed(), 1000u);
}

TEST_F(StdinPumpFixture, APartOfAChunkIsToldAfterAWhile) {
  pump_->deliver(std::string(kPipe + 10000, 'x'));
  wait_for_sum(kPipe);
  read(8192);
  wait_for_sum(kPipe + 8192);
  read(8192);
  wait_for_sum(kPipe + 10000);
}

TEST_F(StdinPumpFixture, AWorkerThatReadsLessThanThePipeNeedsIsSeen) {
  pump_->deliver(std::string(kPipe + 10000, 'x'));
  EXPECT_EQ(next_consumed(), kPipe);
  read(10);
  EXPECT_EQ(next_consumed(), 0u);
  read(1);
  EXPECT_EQ(next_consumed(), 0u);
}

TEST_F(StdinPumpFixture, OfAWorkerThatDoesNotReadNothingIsTold) {
  pump_->deliver(std::string(kPipe + 1, 'x'));
  EXPECT_EQ(next_consumed(), kPipe);
  run_for(3 * StdinPump::kPollInterval);
  EXPECT_EQ(consumed_.size(), 1u);
}

TEST_F(StdinPumpFixture, AFastReaderGetsAllAndAllIsTold) {
  for (int i = 0; i < 20; ++i) pump_->deliver(std::string(kPipe, static_cast<char>('a' + i)));
  pump_->end();
  set_nonblocking(read_end_.get(), true);
  std::string got, buffer(10000, '\0');
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  for (ssize_t n = -1; n != 0 && Clock::now() < deadline;) {
    io_.restart();
    io_.poll();
    n = ::read(read_end_.get(), buffer.data(), buffer.size());
    if (n > 0) got.append(buffer, 0, static_cast<std::size_t>(n));
  }
  std::string expected;
  for (int i = 0; i < 20; ++i) expected.append(kPipe, static_cast<char>('a' + i));
  EXPECT_TRUE(got == expected) << got.size();
  EXPECT_EQ(sum(), 20 * kPipe);
}

TEST_F(StdinPumpFixture, AWorkerThatClosesItsEndIsToldOnce) {
  pump_->deliver(std::string(2 * kPipe, 'x'));
  run_for(std::chrono::milliseconds(50));
  read_end_.reset();
  run_for(std::chrono::seconds(10));
  EXPECT_EQ(n_refused_, 1);
}

TEST_F(StdinPumpFixture, ClosingThePumpIsNoRefusal) {
  pump_->deliver(std::string(2 * kPipe, 'x'));
  run_for(std::chrono::milliseconds(50));
  pump_->close();
  run_for(std::chrono::seconds(10));
  EXPECT_EQ(n_refused_, 0);
}

}  // namespace
}  // namespace drun::agent
