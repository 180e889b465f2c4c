#include "agent/output_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/output_credit.h"

namespace drun::agent {
namespace {

using control::kMinCharge;

// A pump on a real pipe, run step by step.
class PumpFixture : public ::testing::Test {
 protected:
  void start(std::size_t credit) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe.has_value());
    write_end_ = std::move(pipe->write);
    pump_ = std::make_unique<OutputPump>(
        io_, std::move(pipe->read), credit, [this](std::string chunk) { chunks_.push_back(std::move(chunk)); }, [] {});
    tasks_.spawn(pump_->run());
  }
  void TearDown() override {
    write_end_.reset();
    pump_->add_credit(SIZE_MAX);
    io_.restart();
    io_.run_for(std::chrono::seconds(10));
    EXPECT_TRUE(pump_->ended());
  }
  // Writes, and lets the pump do everything that is ready.
  void write(const std::string& bytes) {
    ASSERT_TRUE(write_all(write_end_.get(), bytes).has_value());
    settle();
  }
  void settle() {
    io_.restart();
    while (io_.poll() > 0) {
    }
  }

  asio::io_context io_;
  TaskGroup tasks_{io_.get_executor()};
  Fd write_end_;
  std::unique_ptr<OutputPump> pump_;
  std::vector<std::string> chunks_;
};

TEST_F(PumpFixture, AShortChunkCostsTheLeastCharge) {
  start(3 * kMinCharge);
  for (int i = 0; i < 5; ++i) write("x");
  EXPECT_EQ(chunks_.size(), 3u);
  pump_->add_credit(kMinCharge - 1);
  settle();
  EXPECT_EQ(chunks_.size(), 3u) << "less than one chunk's worth";
  pump_->add_credit(1);
  settle();
  ASSERT_EQ(chunks_.size(), 4u);
  EXPECT_EQ(chunks_.back(), "xx");
}

TEST_F(PumpFixture, ALongChunkCostsItsBytes) {
  start(1000);
  write(std::string(900, 'x'));
  write(std::string(900, 'y'));
  ASSERT_EQ(chunks_.size(), 2u);
  EXPECT_EQ(chunks_[1], std::string(100, 'y'));
}

TEST_F(PumpFixture, TheMarkOfAnUnfinishedLineCostsToo) {
  start(2 * kMinCharge);
  write("Name: ");
  io_.restart();
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  while (chunks_.size() < 2 && Clock::now() < deadline) io_.run_one_until(deadline);
  ASSERT_EQ(chunks_.size(), 2u);
  EXPECT_EQ(chunks_[1], "");
  write("x");
  EXPECT_EQ(chunks_.size(), 2u);
}

TEST_F(PumpFixture, CreditWithoutEndStaysWithoutEnd) {
  start(1000);
  pump_->add_credit(SIZE_MAX);
  pump_->add_credit(SIZE_MAX);
  write(std::string(5000, 'x'));
  EXPECT_EQ(chunks_.size(), 1u);
}

// A terminal whose buffers still hold output when its worker ends.
class TerminalPump : public ::testing::Test {
 protected:
  void SetUp() override {
    Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(master && ::unlockpt(master.get()) == 0);
    slave_.reset(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(slave_);
    pump_ = std::make_unique<OutputPump>(
        io_, std::move(master), 0,
        [this](const std::string& chunk) {
          n_got_ += chunk.size();
          if (goes_on_writing_) n_written_ += fill();
        },
        [] {});
    tasks_.spawn(pump_->run());
    while (const std::size_t n = fill()) n_written_ += n;
  }
  // Fills the terminal's buffers. Returns the number of bytes that fitted.
  std::size_t fill() {
    const std::string bytes(1000, 'x');
    const ssize_t n = ::write(slave_.get(), bytes.data(), bytes.size());
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  void finish() {
    pump_->finish_soon();
    pump_->add_credit(SIZE_MAX);
    io_.run_for(std::chrono::seconds(10));
    EXPECT_TRUE(pump_->ended());
  }

  asio::io_context io_;
  TaskGroup tasks_{io_.get_executor()};
  Fd slave_;
  std::unique_ptr<OutputPump> pump_;
  std::size_t n_written_ = 0, n_got_ = 0;
  bool goes_on_writing_ = false;
};

TEST_F(TerminalPump, AllOfItComes) {
  slave_.reset();
  finish();
  EXPECT_EQ(n_got_, n_written_);
}

TEST_F(TerminalPump, AllOfItComesThoughADescendantKeepsItOpen) {
  finish();
  EXPECT_EQ(n_got_, n_written_);
}

TEST_F(TerminalPump, ADescendantThatGoesOnWritingIsNotWaitedFor) {
  goes_on_writing_ = true;
  const std::size_t n_before = n_written_;
  EXPECT_LT(n_before, static_cast<std::size_t>(OutputPump::kTerminalHolds));
  finish();
  EXPECT_GE(n_got_, n_before);
}

}  // namespace
}  // namespace drun::agent
