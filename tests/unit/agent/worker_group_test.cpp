#include "agent/worker_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "tests/fakes/virtual_time.h"

namespace drun::agent {
namespace {

using control::Type;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int kSuccess = 0;

struct SentSignal {
  pid_t group = 0;
  int number = 0;
  milliseconds at{0};  // since the order of the end, or the start of the test
  bool operator==(const SentSignal& other) const {
    return group == other.group && number == other.number && at == other.at;
  }
};
void PrintTo(const SentSignal& s, std::ostream* out) {
  *out << s.number << " to " << s.group << " at " << s.at.count();
}

// Workers with the pids 100, 101, ... that do nothing. Their streams are pipes, of which it holds the other ends.
class FakeProcesses : public Processes {
 public:
  Result<WorkerProcess> start(const WorkerStart& start) override {
    if (start.file == "missing") return fail(Errc::kNotFound, "exec missing: No such file or directory");
    WorkerProcess process;
    process.pid = 100 + n_started_++;
    auto report = make_pipe();
    process.exec_report = std::move(report->read);
    if (start.file == "hangs") hanging[process.pid] = std::move(report->write);
    auto out = make_pipe();
    process.stdout_end = std::move(out->read);
    if (!start.pty) {
      auto err = make_pipe();
      process.stderr_end = std::move(err->read);
      stderr_[process.pid] = std::move(err->write);
    }
    if (start.wants_stdin) {
      auto in = make_pipe();
      process.stdin_end = std::move(in->write);
      stdin_[process.pid] = std::move(in->read);
    }
    stdout_[process.pid] = std::move(out->write);
    groups[process.pid].insert(process.pid);
    return process;
  }
  void signal_group(pid_t group, int number) override {
    signals.push_back({group, number, std::chrono::duration_cast<milliseconds>(Clock::now() - began_)});
  }
  void signal_child(pid_t pid, int number) override { signal_group(pid, number); }
  bool has_members(pid_t group) override { return !groups[group].empty(); }
  bool has_children() override { return !descendants().empty(); }
  std::vector<pid_t> descendants() override {
    std::vector<pid_t> all(strays);
    for (const auto& [group, members] : groups) all.insert(all.end(), members.begin(), members.end());
    return all;
  }

  void restart_clock() { began_ = Clock::now(); }
  void write(pid_t pid, const std::string& text) { write_all(stdout_[pid].get(), text); }
  // As much as the pipe takes at once.
  std::size_t write_some(pid_t pid, const std::string& text) {
    set_nonblocking(stdout_[pid].get(), true);
    const ssize_t n = ::write(stdout_[pid].get(), text.data(), text.size());
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  std::string read_stdin(pid_t pid) {
    char bytes[256];
    const ssize_t n = ::read(stdin_[pid].get(), bytes, sizeof bytes);
    return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : "";
  }
  void close_streams(pid_t pid) {
    stdout_.erase(pid);
    stderr_.erase(pid);
  }

  std::map<pid_t, std::set<pid_t>> groups;  // members that are alive
  std::vector<pid_t> strays;                // descendants in no worker's group
  std::vector<SentSignal> signals;
  std::map<pid_t, Fd> hanging;  // those that have not executed their program

 private:
  int n_started_ = 0;
  std::map<pid_t, Fd> stdin_, stdout_, stderr_;
  Deadline began_ = Clock::now();
};

// The test is drun, the kernel and the agent's reaper.
class WorkerGroupTest : public ::testing::Test {
 protected:
  WorkerGroupTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as the agent does
  }
  ~WorkerGroupTest() override {
    to_drun_.close();
    group_.reader_lost();
    for (const auto& [rank, worker] : group_.workers()) processes_.close_streams(worker.pid);
    group_.stop();
    time_.run_for(seconds(2));
  }

  void start(std::uint32_t n_workers, const std::string& file = "train") {
    control::Spawn order;
    order.output_credit = 1u << 20;
    order.start_ms = 9000;
    for (std::uint32_t rank = 0; rank < n_workers; ++rank) {
      control::WorkerSpec spec;
      spec.rank = rank;
      spec.wants_stdin = rank == 0;
      order.workers.push_back(spec);
    }
    const auto start_of = [&file](const control::WorkerSpec& spec) {
      WorkerStart start;
      start.file = file;
      start.wants_stdin = spec.wants_stdin;
      return start;
    };
    group_.start(order, start_of);
    time_.settle();
  }
  // The process ends; `rest` of its group do not.
  void exit(pid_t pid, int wait_status, std::set<pid_t> rest = {}) {
    processes_.groups[pid] = std::move(rest);
    if (processes_.groups[pid].empty()) processes_.close_streams(pid);
    group_.reaped(pid, wait_status);
    time_.settle();
  }
  void order_end(milliseconds grace, milliseconds delay = {}, const std::vector<std::uint32_t>& delayed = {}) {
    processes_.restart_clock();
    group_.order_end(grace, delay, delayed);
    tasks_.spawn(end());
    time_.settle();
  }
  Task<void> end() {
    co_await group_.end();
    is_over_ = true;
  }
  Task<void> read_left() {
    left_ = co_await group_.left_in_background();
    is_over_ = true;
  }
  Task<void> read_frames() {
    for (;;) {
      auto bytes = co_await to_drun_.next();
      if (!bytes) co_return;
      parser_.push(*bytes);
      for (auto frame = parser_.next(); frame && *frame; frame = parser_.next()) frames_.push_back(std::move(**frame));
    }
  }
  // The messages of that type that drun has received.
  template <typename Message>
  std::vector<Message> received(Type type) {
    if (!is_reading_) tasks_.spawn(read_frames());
    is_reading_ = true;
    time_.settle();
    std::vector<Message> messages;
    for (const auto& frame : frames_) {
      if (frame.type == type) messages.push_back(control::decode<Message>(frame.body).value());
    }
    return messages;
  }
  // The signals to that group since the start: number and time.
  std::vector<std::pair<int, milliseconds>> signals_to(pid_t group) {
    std::vector<std::pair<int, milliseconds>> sent;
    for (const auto& signal : processes_.signals) {
      if (signal.group == group) sent.emplace_back(signal.number, rounded(signal.at));
    }
    return sent;
  }
  // Virtual time moves in steps, and real time passes as well.
  static milliseconds rounded(milliseconds time) { return milliseconds((time.count() + 50) / 100 * 100); }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  TaskGroup tasks_{io_.get_executor()};
  FakeProcesses processes_;
  control::FrameQueue to_drun_{io_.get_executor()};
  WorkerGroup group_{io_, processes_, to_drun_, [](control::Exited& report) { report.error_file = "evidence"; }};
  control::FrameParser parser_;
  std::vector<control::Frame> frames_;
  std::vector<pid_t> left_;
  bool is_reading_ = false;
  bool is_over_ = false;
};

using Sent = std::vector<std::pair<int, milliseconds>>;

TEST_F(WorkerGroupTest, ReportsStarts) {
  start(2);
  const auto started = received<control::Started>(Type::kStarted);
  ASSERT_EQ(started.size(), 2u);
  EXPECT_EQ(started[1].rank, 1u);
  EXPECT_EQ(started[1].pid, 101);
  EXPECT_EQ(group_.n_running(), 2u);
}

TEST_F(WorkerGroupTest, ReportsAStartThatFailed) {
  start(1, "missing");
  const auto started = received<control::Started>(Type::kStarted);
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0].pid, 0);
  EXPECT_EQ(started[0].error, ENOENT);
  EXPECT_EQ(group_.n_running(), 0u);
}

TEST_F(WorkerGroupTest, AWorkerIsStartedWhenItHasExecutedItsProgram) {
  start(1, "hangs");
  time_.run_for(seconds(8));
  EXPECT_THAT(received<control::Started>(Type::kStarted), IsEmpty());
  processes_.hanging.clear();
  EXPECT_EQ(received<control::Started>(Type::kStarted).at(0).pid, 100);
}

TEST_F(WorkerGroupTest, AWorkerThatHangsInItsExecIsReportedInTimeAndNeverAsEnded) {
  start(1, "hangs");
  time_.run_for(seconds(10));
  const auto started = received<control::Started>(Type::kStarted);
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0].error, ETIMEDOUT);
  EXPECT_EQ(started[0].what, "execute hangs: process 100 has not done it within 9 s; does its file system answer?");
  order_end(seconds(5));
  time_.run_for(seconds(6));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(signals_to(100).at(0).first, SIGTERM);
  exit(100, SIGKILL);
  EXPECT_THAT(received<control::Exited>(Type::kExited), IsEmpty());
  EXPECT_THAT(received<control::Output>(Type::kOutputEnd), IsEmpty());
}

TEST_F(WorkerGroupTest, AnEarlyExitIsReportedAfterTheStart) {
  start(1, "hangs");
  exit(100, 3 << 8);  // the agent's reaper was quicker than the report
  EXPECT_THAT(received<control::Exited>(Type::kExited), IsEmpty());
  processes_.hanging.clear();
  EXPECT_EQ(received<control::Started>(Type::kStarted).size(), 1u);
  EXPECT_EQ(received<control::Exited>(Type::kExited).at(0).wait_status, 3 << 8);
}

TEST_F(WorkerGroupTest, InputThatComesBeforeTheExecIsKept) {
  start(1, "hangs");
  control::Input input;
  input.bytes = "data";
  group_.deliver(input);
  processes_.hanging.clear();
  time_.settle();
  EXPECT_EQ(processes_.read_stdin(100), "data");
}

TEST_F(WorkerGroupTest, ReportsAnExitWithItsEvidence) {
  start(2);
  exit(101, 3 << 8);
  const auto exits = received<control::Exited>(Type::kExited);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].rank, 1u);
  EXPECT_EQ(exits[0].wait_status, 3 << 8);
  EXPECT_FALSE(exits[0].ended_by_drun);
  EXPECT_EQ(exits[0].error_file, "evidence");
}

TEST_F(WorkerGroupTest, IgnoresAChildThatIsNoWorker) {
  start(1);
  group_.reaped(999, kSuccess);
  EXPECT_THAT(received<control::Exited>(Type::kExited), IsEmpty());
}

TEST_F(WorkerGroupTest, ForwardsOutputAndInput) {
  start(1);
  processes_.write(100, "hello\n");
  const auto output = received<control::Output>(Type::kOutput);
  ASSERT_EQ(output.size(), 1u);
  EXPECT_EQ(output[0].bytes, "hello\n");
  control::Input input;
  input.bytes = "data";
  group_.deliver(input);
  time_.settle();
  EXPECT_EQ(processes_.read_stdin(100), "data");
  input.rank = 7;  // not here
  group_.deliver(input);
  group_.end_input(input);
}

TEST_F(WorkerGroupTest, EndsWithTermAndThenKillAfterTheGraceTime) {
  start(1);
  order_end(seconds(5));
  time_.run_for(seconds(6));
  EXPECT_TRUE(is_over_);
  // The last one is for groups that were about to get it, too.
  EXPECT_EQ(signals_to(100),
            (Sent{{SIGTERM, seconds(0)}, {SIGCONT, seconds(0)}, {SIGKILL, seconds(5)}, {SIGKILL, seconds(5)}}));
  exit(100, SIGKILL);
  EXPECT_TRUE(received<control::Exited>(Type::kExited).at(0).ended_by_drun);
}

TEST_F(WorkerGroupTest, IsOverAsSoonAsTheLastWorkerObeys) {
  start(2);
  order_end(seconds(5));
  time_.run_for(seconds(1));
  exit(100, SIGTERM);
  EXPECT_FALSE(is_over_);
  exit(101, SIGTERM);
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(signals_to(101), (Sent{{SIGTERM, seconds(0)}, {SIGCONT, seconds(0)}}));
  for (const auto& exited : received<control::Exited>(Type::kExited)) EXPECT_TRUE(exited.ended_by_drun);
}

TEST_F(WorkerGroupTest, ADelayedRankGetsTermLaterAndItsWholeGraceTime) {
  start(2);
  order_end(seconds(5), seconds(1), {1});
  time_.run_for(seconds(7));
  EXPECT_EQ(signals_to(100).at(0), std::make_pair(SIGTERM, milliseconds(0)));
  EXPECT_EQ(signals_to(100).at(2), std::make_pair(SIGKILL, milliseconds(5000)));
  EXPECT_EQ(signals_to(101).at(0), std::make_pair(SIGTERM, milliseconds(1000)));
  EXPECT_EQ(signals_to(101).at(2), std::make_pair(SIGKILL, milliseconds(6000)));
}

TEST_F(WorkerGroupTest, ADelayedRankThatEndsByItselfGetsNoSignal) {
  start(1);
  order_end(seconds(5), seconds(1), {0});
  time_.run_for(milliseconds(500));
  exit(100, 75 << 8);
  EXPECT_TRUE(is_over_);
  EXPECT_THAT(processes_.signals, IsEmpty());
  EXPECT_FALSE(received<control::Exited>(Type::kExited).at(0).ended_by_drun);
}

TEST_F(WorkerGroupTest, ASecondOrderMakesTheEndEarlier) {
  start(1);
  order_end(seconds(5));
  time_.run_for(seconds(1));
  group_.order_end(milliseconds(0), {}, {});
  time_.settle();
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(signals_to(100).at(2), std::make_pair(SIGKILL, milliseconds(1000)));
}

TEST_F(WorkerGroupTest, ASecondOrderCantMakeTheEndLater) {
  start(1);
  order_end(seconds(2));
  time_.run_for(seconds(1));
  group_.order_end(seconds(30), {}, {});
  time_.run_for(seconds(2));
  EXPECT_TRUE(is_over_);
}

TEST_F(WorkerGroupTest, TheRestOfAGroupHasTheGraceTimeToo) {
  start(1);
  order_end(seconds(5));
  exit(100, SIGTERM, {150});
  time_.run_for(seconds(2));
  EXPECT_FALSE(is_over_);
  processes_.groups[100].clear();  // its end is not reported to the agent: the parent need not be the agent
  time_.run_for(milliseconds(50));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(signals_to(100).size(), 2u);
}

TEST_F(WorkerGroupTest, TheRestOfAGroupGetsKillAfterTheGraceTime) {
  start(1);
  order_end(seconds(5));
  exit(100, SIGTERM, {150});
  time_.run_for(seconds(6));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(signals_to(100).at(2), std::make_pair(SIGKILL, milliseconds(5000)));
}

// As with `exec > >(filter)` in a shell, which does not wait for it.
TEST_F(WorkerGroupTest, TheRestOfAGroupMayWriteForAMoment) {
  start(2);
  exit(100, kSuccess, {150});
  exit(101, kSuccess, {151});
  EXPECT_EQ(received<control::Exited>(Type::kExited).size(), 2u);
  time_.run_for(milliseconds(300));
  EXPECT_THAT(received<control::Output>(Type::kOutputEnd), IsEmpty());
  processes_.write(100, "late\n");
  time_.settle();
  processes_.groups[100].clear();
  processes_.close_streams(100);
  time_.run_for(milliseconds(100));
  const auto outputs = received<control::Output>(Type::kOutput);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].bytes, "late\n");
  EXPECT_EQ(received<control::Output>(Type::kOutputEnd).size(), 2u);  // stdout and stderr of rank 0
  time_.run_for(milliseconds(200));
  EXPECT_EQ(received<control::Output>(Type::kOutputEnd).size(), 4u);
}

// It may say the reason then, or that it has saved its state.
TEST_F(WorkerGroupTest, TheRestOfAGroupMayWriteUntilTheEndOfItsGraceTime) {
  start(1);
  exit(100, 1 << 8, {150});
  order_end(seconds(5));
  time_.run_for(milliseconds(800));
  processes_.write(100, "saved\n");
  time_.run_for(milliseconds(100));
  const auto outputs = received<control::Output>(Type::kOutput);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].bytes, "saved\n");
  processes_.groups[100].clear();
}

TEST_F(WorkerGroupTest, PauseStopsAndResumeContinues) {
  start(2);
  group_.pause();
  group_.resume();
  EXPECT_EQ(signals_to(101), (Sent{{SIGSTOP, seconds(0)}, {SIGCONT, seconds(0)}}));
}

TEST_F(WorkerGroupTest, AWorkerThatIsStartedDuringAPauseIsStopped) {
  group_.pause();
  start(1);
  EXPECT_EQ(signals_to(100), (Sent{{SIGSTOP, seconds(0)}}));
}

// Its deadline does not stand still.
TEST_F(WorkerGroupTest, APauseStopsAWorkerOnceItHasExecuted) {
  start(1, "hangs");
  group_.pause();
  time_.run_for(seconds(1));
  EXPECT_EQ(signals_to(100), Sent{});
  processes_.hanging.clear();
  time_.settle();
  EXPECT_EQ(signals_to(100), (Sent{{SIGSTOP, seconds(1)}}));
}

TEST_F(WorkerGroupTest, APauseDuringTheEndStopsNothing) {
  start(1);
  order_end(seconds(5));
  group_.pause();
  EXPECT_EQ(signals_to(100), (Sent{{SIGTERM, seconds(0)}, {SIGCONT, seconds(0)}}));
}

TEST_F(WorkerGroupTest, ASignalReachesGroupsThatHaveMembers) {
  start(3);
  exit(101, kSuccess);
  exit(102, kSuccess, {150});
  group_.signal(SIGUSR1);
  std::vector<pid_t> groups;
  for (const auto& signal : processes_.signals) groups.push_back(signal.group);
  EXPECT_THAT(groups, ElementsAre(100, 102));
}

TEST_F(WorkerGroupTest, HelpersHaveAMomentToEndAfterTheWorkers) {
  start(1);
  processes_.strays = {150};
  exit(100, kSuccess);
  group_.order_end(milliseconds(0), {}, {});
  tasks_.spawn(read_left());
  time_.run_for(milliseconds(200));
  EXPECT_FALSE(is_over_);
  processes_.strays.clear();
  time_.run_for(milliseconds(50));
  EXPECT_TRUE(is_over_);
  EXPECT_THAT(left_, IsEmpty());
}

TEST_F(WorkerGroupTest, WhatGoesOnAfterTheWorkersIsLeft) {
  start(1);
  processes_.strays = {150, 151};
  exit(100, kSuccess);
  group_.order_end(milliseconds(0), {}, {});
  tasks_.spawn(read_left());
  time_.run_for(seconds(1));
  EXPECT_TRUE(is_over_);
  EXPECT_THAT(left_, UnorderedElementsAre(150, 151));
}

TEST_F(WorkerGroupTest, NothingIsLeftInBackgroundWhileAWorkerRuns) {
  start(1);
  group_.order_end(seconds(5), {}, {});
  tasks_.spawn(read_left());
  time_.settle();
  EXPECT_TRUE(is_over_);
  EXPECT_THAT(left_, IsEmpty());
}

TEST_F(WorkerGroupTest, OutputWithoutAReaderIsNotWaitedFor) {
  start(1);
  tasks_.spawn(group_.output_sent());
  time_.settle();
  EXPECT_EQ(tasks_.running(), 1);
  to_drun_.close();
  group_.reader_lost();
  time_.settle();
  EXPECT_EQ(tasks_.running(), 0);
}

// A worker that is blocked in a write could not act on SIGTERM.
TEST_F(WorkerGroupTest, OutputWithoutAReaderDoesNotBlockItsWorker) {
  start(1);
  const std::string much(1u << 20, 'x');
  while (processes_.write_some(100, much) > 0) time_.settle();  // until credit and pipe are used up
  to_drun_.close();
  group_.reader_lost();
  for (int i = 0; i < 8; ++i) {
    time_.settle();
    EXPECT_GT(processes_.write_some(100, much), 0u) << i;
  }
}

}  // namespace
}  // namespace drun::agent
