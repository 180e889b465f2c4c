// The real agent binary as a child process: frames in, frames out, and nothing left behind however it ends.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "agent/sweep.h"
#include "base/fd.h"
#include "control/frames.h"
#include "control/messages.h"
#include "rendezvous/blocking.h"
#include "rendezvous/relay.h"
#include "tests/temp_folder.h"

namespace drun {
namespace {

using control::Type;
using std::chrono::milliseconds;

// One id per test process: the agents of tests that run in parallel sweep strangers with their own id.
std::string job_id() {
  char text[17];
  std::snprintf(text, sizeof text, "%016x", static_cast<unsigned>(::getpid()));
  return text;
}

// drun's end of an agent, blocking, with a deadline on every read.
class AgentFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    agent::become_subreaper();  // so that survivors become our descendants
    auto in = make_pipe();
    auto out = make_pipe();
    ASSERT_TRUE(in && out);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in->read.get(), 0);
      ::dup2(out->write.get(), 1);
      ::execl(DRUN_AGENT_BINARY, "drun-agent", nullptr);
      ::_exit(126);
    }
    to_ = std::move(in->write);
    from_ = std::move(out->read);
    set_nonblocking(from_.get(), true);
    std::string magic;
    while (magic.size() < control::kMagic.size()) {
      const std::string more = read_some();
      ASSERT_FALSE(more.empty()) << "no magic";
      magic += more;
    }
    ASSERT_EQ(magic.substr(0, control::kMagic.size()), control::kMagic);
    parser_.push(std::string_view(magic).substr(control::kMagic.size()));
    const auto hello = control::decode<control::Hello>(wait_for(Type::kHello).body);
    ASSERT_TRUE(hello.has_value());
    EXPECT_FALSE(hello->boot_id.empty());
    agent_pid_ = hello->pid;
    control::Configure configure;
    configure.job_id = job_id();
    configure.heartbeat_ms = 200;
    configure.heartbeat_timeout_ms = 2000;
    configure.grace_ms = 500;
    send(Type::kConfigure, control::encode(configure));
  }

  void TearDown() override {
    to_.reset();
    const Deadline deadline = Clock::now() + std::chrono::seconds(10);
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0 && Clock::now() < deadline) ::usleep(2000);
    EXPECT_TRUE(agent::descendants().empty()) << "something survived its agent";
    agent::SweepLimits limits;
    limits.deadline = deadline;
    agent::sweep(limits, [](pid_t, int) {});
  }

  void send(Type type, const std::string& body) { write_all(to_.get(), control::encode_frame(type, body)); }

  std::string read_some() {
    pollfd p{from_.get(), POLLIN, 0};
    if (::poll(&p, 1, 10000) <= 0) return {};
    char buffer[65536];
    const ssize_t n = ::read(from_.get(), buffer, sizeof buffer);
    return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
  }

  // Returns the next frame that is no heartbeat; a frame of type kHeartbeat at the end of the stream.
  control::Frame next() {
    for (;;) {
      auto frame = parser_.next();
      if (frame && *frame && (*frame)->type != Type::kHeartbeat) return std::move(**frame);
      if (frame && *frame) continue;
      const std::string more = read_some();
      if (more.empty()) return {};
      parser_.push(more);
    }
  }

  control::Frame wait_for(Type type) {
    for (;;) {
      control::Frame frame = next();
      if (frame.type == Type::kOutputEnd) ++n_output_ends_;
      if (frame.type == type || frame.type == Type::kHeartbeat) return frame;
      if (frame.type == Type::kOutput) {
        const auto m = control::decode<control::Output>(frame.body);
        (m->stream == control::Stream::kStdout ? output_ : error_output_) += m->bytes;
      }
    }
  }

  control::Prepared prepare(std::vector<std::string> argv, const std::string& directory = "/",
                            const std::string& path = "/usr/bin:/bin") {
    control::Prepare job;
    job.argv = std::move(argv);
    job.working_directory = directory;
    job.environment["PATH"] = path;
    job.master_address = "127.0.0.1";
    job.time_ms = 30'000;
    send(Type::kPrepare, control::encode(job));
    return control::decode<control::Prepared>(wait_for(Type::kPrepared).body).value();
  }

  int start(std::vector<std::string> argv, bool wants_stdin = false, std::uint32_t credit = 1u << 20,
            bool pty = false) {
    const auto prepared = prepare(std::move(argv));
    EXPECT_TRUE(prepared.problems.empty());
    EXPECT_GT(prepared.master_port, 0);
    master_port_ = prepared.master_port;
    control::Spawn order;
    control::WorkerSpec worker;
    worker.wants_stdin = wants_stdin;
    worker.environment["RANK"] = "0";
    order.workers.push_back(worker);
    order.output_credit = credit;
    order.pty = pty;
    order.window.columns = 106;
    order.window.rows = 50;
    order.start_ms = 30'000;
    send(Type::kSpawn, control::encode(order));
    const auto started = control::decode<control::Started>(wait_for(Type::kStarted).body).value();
    EXPECT_EQ(started.error, 0) << started.what;
    return started.pid;
  }

  // Reads the rest of the worker's output, which an exit may overtake.
  void finish_output() {
    while (n_output_ends_ < 2 && wait_for(Type::kOutputEnd).type == Type::kOutputEnd) {
    }
  }

  int start_shell(const std::string& script) { return start({"sh", "-c", script}); }

  void expect_all_gone_within(milliseconds limit) {
    const Deadline deadline = Clock::now() + limit;
    int status = 0;
    while (Clock::now() < deadline) {
      ::waitpid(pid_, &status, WNOHANG);
      if (agent::descendants().empty()) return;
      ::usleep(2000);
    }
    ADD_FAILURE() << agent::descendants().size() << " processes left after " << limit.count() << " ms";
  }

  pid_t pid_ = 0;  // the guard
  pid_t agent_pid_ = 0;
  Fd to_, from_;
  control::FrameParser parser_;
  std::string output_, error_output_;
  int n_output_ends_ = 0;
  int master_port_ = 0;
};

// A worker, a child, a setsid child and a double-forked daemon; all but the first ignore TERM and HUP.
constexpr const char* kFamily =
    "trap '' TERM HUP; sleep 1000 & setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & "
    "( ( trap '' TERM HUP; setsid sleep 1000 ) & ) ; echo ready; wait; sleep 1000";

TEST_F(AgentFixture, RunsAWorkerAndReportsItsExitAndAllOfItsOutput) {
  start_shell("echo out; echo err >&2; echo $RANK; exit 3");
  const auto exited = control::decode<control::Exited>(wait_for(Type::kExited).body).value();
  finish_output();
  EXPECT_EQ(output_, "out\n0\n");
  EXPECT_EQ(error_output_, "err\n");
  EXPECT_TRUE(WIFEXITED(exited.wait_status));
  EXPECT_EQ(WEXITSTATUS(exited.wait_status), 3);
  EXPECT_FALSE(exited.ended_by_drun);
}

TEST_F(AgentFixture, SaysWhatItsWorkersDo) {
  const int pid = start_shell("sleep 1000; true");
  control::Described described;
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  const auto sleeps = [&] {  // the shell may not have forked yet, nor the child run `sleep`
    return described.processes.size() == 2 && described.processes[1].name == "sleep" &&
           described.processes[1].state == 'S';
  };
  while (!sleeps() && Clock::now() < deadline) {
    send(Type::kDescribe, control::encode(control::Describe()));
    described = control::decode<control::Described>(wait_for(Type::kDescribed).body).value();
  }
  EXPECT_EQ(described.rank, 0u);
  EXPECT_EQ(described.pid, pid);
  EXPECT_TRUE(described.running);
  ASSERT_EQ(described.processes.size(), 2u);
  EXPECT_EQ(described.processes[0].pid, pid);
  EXPECT_EQ(described.processes[0].name, "sh");
  EXPECT_TRUE(sleeps());
  EXPECT_TRUE(described.processes[1].stack.empty()) << "nobody asked for it";
}

TEST_F(AgentFixture, SaysHowAWorkerEnded) {
  start_shell("exit 3");
  wait_for(Type::kExited);
  send(Type::kDescribe, control::encode(control::Describe()));
  const auto described = control::decode<control::Described>(wait_for(Type::kDescribed).body).value();
  EXPECT_FALSE(described.running);
  EXPECT_EQ(WEXITSTATUS(described.wait_status), 3);
  EXPECT_TRUE(described.processes.empty());
}

TEST_F(AgentFixture, NamesTheSignalThatEndedAWorker) {
  const int pid = start_shell("exec sleep 1000");
  ::kill(pid, SIGSEGV);
  const auto exited = control::decode<control::Exited>(wait_for(Type::kExited).body).value();
  ASSERT_TRUE(WIFSIGNALED(exited.wait_status));
  EXPECT_EQ(WTERMSIG(exited.wait_status), SIGSEGV);
}

// By a program that does not set SO_REUSEADDR.
TEST_F(AgentFixture, TheMasterPortIsFreeOnceTheWorkersRun) {
  start({"sleep", "1000"});
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(master_port_));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
      << std::strerror(errno);
}

TEST_F(AgentFixture, SendsNoMoreThanTheCredit) {
  start({"sh", "-c", "head -c 100000 /dev/zero"}, false, 1000);
  std::size_t received = 0;
  while (received < 1000) {
    const auto frame = wait_for(Type::kOutput);
    ASSERT_EQ(frame.type, Type::kOutput);
    received += control::decode<control::Output>(frame.body)->bytes.size();
  }
  EXPECT_EQ(received, 1000u);
  output_.clear();
  const Deadline later = Clock::now() + milliseconds(50);
  while (Clock::now() < later) ::usleep(1000);
  send(Type::kPing, control::encode(control::Ping{}));
  wait_for(Type::kPong);
  EXPECT_EQ(output_, "") << "nothing without credit";
  control::Credit credit;
  credit.n_bytes = 99000;
  send(Type::kCredit, control::encode(credit));
  while (received < 100000) {
    const auto frame = wait_for(Type::kOutput);
    ASSERT_EQ(frame.type, Type::kOutput);
    received += control::decode<control::Output>(frame.body)->bytes.size();
  }
  EXPECT_EQ(received, 100000u);
}

TEST_F(AgentFixture, FeedsStdinAndItsEnd) {
  start({"cat"}, true);
  control::Input input;
  input.bytes = std::string("a\0b\n", 4);
  send(Type::kStdin, control::encode(input));
  EXPECT_EQ(control::decode<control::Credit>(wait_for(Type::kStdinCredit).body)->n_bytes, 4u);
  input.bytes.clear();
  send(Type::kStdinEnd, control::encode(input));
  wait_for(Type::kExited);
  finish_output();
  EXPECT_EQ(output_, std::string("a\0b\n", 4));
}

TEST_F(AgentFixture, GivesATerminalWithPty) {
  start({"sh", "-c", "test -t 1 && echo terminal"}, false, 1u << 20, true);
  wait_for(Type::kExited);
  finish_output();
  EXPECT_EQ(output_, "terminal\r\n");
}

TEST_F(AgentFixture, ATerminalHasTheSizeThatDrunSaysAlsoLater) {
  start({"sh", "-c", "trap 'stty -F /dev/tty size; exit' WINCH; stty -F /dev/tty size; while :; do sleep 0.02; done"},
        false, 1u << 20, true);
  EXPECT_EQ(control::decode<control::Output>(wait_for(Type::kOutput).body)->bytes, "50 106\r\n");
  control::WindowSize window;
  window.columns = 60;
  window.rows = 20;
  send(Type::kResize, control::encode(window));
  EXPECT_EQ(control::decode<control::Output>(wait_for(Type::kOutput).body)->bytes, "20 60\r\n");
  EXPECT_EQ(control::decode<control::Exited>(wait_for(Type::kExited).body)->wait_status, 0);
  send(Type::kResize, control::encode(window));  // for a terminal that is gone
  finish_output();
}

TEST_F(AgentFixture, WhatATerminalHoldsAtTheWorkersEndComesWhenThereIsCredit) {
  // dd ends when the terminal takes no more, and reports how much it took.
  const std::string path = std::filesystem::temp_directory_path() / ("agent_test." + std::to_string(::getpid()));
  start({"sh", "-c", "LC_ALL=C dd if=/dev/zero bs=100 oflag=nonblock 2> " + path + "; true"}, false, 1000, true);
  EXPECT_EQ(wait_for(Type::kExited).type, Type::kExited);
  control::Credit credit;
  credit.n_bytes = 1u << 20;
  send(Type::kCredit, control::encode(credit));
  finish_output();
  const std::string said = read_file(path).value_or("");
  std::filesystem::remove(path);
  const auto copied = said.find(" bytes");
  ASSERT_NE(copied, std::string::npos) << said;
  EXPECT_EQ(output_.size(), std::stoul(said.substr(said.rfind('\n', copied) + 1)));
}

TEST_F(AgentFixture, SaysWhatIsWrongWithTheCommandBeforeStarting) {
  EXPECT_EQ(prepare({"no-such-command-here"}).problems.at(0).kind, control::ProblemKind::kNotFound);
  EXPECT_EQ(prepare({"./missing"}).problems.at(0).kind, control::ProblemKind::kNotFound);
  EXPECT_EQ(prepare({"/etc/passwd"}).problems.at(0).kind, control::ProblemKind::kNotExecutable);
  EXPECT_EQ(prepare({"/etc"}).problems.at(0).kind, control::ProblemKind::kNotExecutable);
  EXPECT_EQ(prepare({"true"}, "/no such dir").problems.at(0).kind, control::ProblemKind::kWorkingDirectory);
  EXPECT_TRUE(prepare({"true"}).problems.empty());
}

TEST_F(AgentFixture, SaysWhatToTypeInPlaceOfACommand) {
  const auto hint = [&](std::vector<std::string> argv, const std::string& path = "/usr/bin:/bin") {
    return prepare(std::move(argv), "/", path).problems.at(0).hint;
  };
  EXPECT_EQ(hint({"env FOO=1 true"}), "it is a line for a shell: sh -c 'env FOO=1 true'");
  EXPECT_EQ(hint({"/usr/bin/env FOO=1 true"}), "it is a line for a shell: sh -c '/usr/bin/env FOO=1 true'");
  EXPECT_NE(hint({"/no such program"}).find("copy it there"), std::string::npos);
  EXPECT_EQ(hint({"FOO=1", "true"}), "-x FOO=1 true");
  const drun::testing::TempFolder folder;
  folder.write("python3", "");
  EXPECT_EQ(hint({"python", "train.py"}, folder.path()),
            "give the full path, or set PATH for the workers with -x PATH=...");
  std::filesystem::permissions(folder.path() + "/python3", std::filesystem::perms::owner_all);
  EXPECT_EQ(hint({"python", "train.py"}, folder.path()), "python3");
}

TEST_F(AgentFixture, SaysWhichInterpreterAScriptIsFor) {
  const drun::testing::TempFolder folder;
  const auto problem = [&](const std::string& text) {
    folder.write("script", text);
    std::filesystem::permissions(folder.path("script"), std::filesystem::perms::owner_all);
    const auto problems = prepare({"./script"}, folder.path()).problems;
    return problems.empty() ? std::string() : problems[0].cause + " | " + problems[0].hint;
  };
  EXPECT_EQ(problem("#!/bin/sh\n"), "");
  EXPECT_EQ(problem("echo without a first line\n"), "");
  EXPECT_EQ(problem("#!/nosuch/python\n"),
            "'./script' is a script for /nosuch/python, which is not there | change its first line, or name the "
            "interpreter before the script");
  EXPECT_EQ(
      problem("#!/bin/sh\r\necho\r\n"),
      "'./script' is a script for an interpreter with a carriage return in its name, which is not there | the file "
      "has line ends of DOS: sed -i 's/\\r$//' ./script");
  EXPECT_EQ(prepare({"/etc"}).problems.at(0).hint, "give the program's file");
}

TEST_F(AgentFixture, CountsAndNamesWhatGoesOnAfterTheWorkers) {
  start_shell("sleep 1000 & setsid sleep 1000 &");
  wait_for(Type::kExited);
  send(Type::kStop, control::encode(control::Stop{}));
  const auto finished = control::decode<control::Finished>(wait_for(Type::kFinished).body).value();
  EXPECT_EQ(finished.leftovers, 2u);
  EXPECT_EQ(finished.leftover_name, "sleep");
  expect_all_gone_within(milliseconds(2000));
}

// Like the helpers of Python's multiprocessing, the child ends shortly after the worker.
TEST_F(AgentFixture, DoesNotCountWhatEndsAfterItsWorker) {
  start_shell("sleep 0.05 &");
  wait_for(Type::kExited);
  send(Type::kStop, control::encode(control::Stop{}));
  EXPECT_EQ(control::decode<control::Finished>(wait_for(Type::kFinished).body)->leftovers, 0u);
}

TEST_F(AgentFixture, StopEndsTheWholeFamily) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  control::Stop stop;
  stop.grace_ms = 200;
  send(Type::kStop, control::encode(stop));
  const auto exited = control::decode<control::Exited>(wait_for(Type::kExited).body).value();
  EXPECT_TRUE(exited.ended_by_drun);
  EXPECT_EQ(wait_for(Type::kFinished).type, Type::kFinished);
  expect_all_gone_within(milliseconds(2000));
}

TEST_F(AgentFixture, AWorkerThatObeysTermIsOverAtOnce) {
  start_shell("exec sleep 1000");
  const auto before = Clock::now();
  control::Stop stop;
  stop.grace_ms = 20000;
  send(Type::kStop, control::encode(stop));
  EXPECT_EQ(wait_for(Type::kFinished).type, Type::kFinished);
  EXPECT_LT(Clock::now() - before, milliseconds(5000)) << "far from the grace time";
}

TEST_F(AgentFixture, AWorkerThatHearsAbortFirstGetsTermLater) {
  start_shell("trap 'echo term; exit 1' TERM; echo ready; while :; do sleep 0.02; done");
  wait_for(Type::kOutput);
  const auto before = Clock::now();
  control::Stop stop;
  stop.delay_ms = 400;
  stop.grace_ms = 20000;
  stop.delayed = {0};
  send(Type::kStop, control::encode(stop));
  wait_for(Type::kExited);
  EXPECT_GE(Clock::now() - before, milliseconds(400));
  finish_output();
  EXPECT_NE(output_.find("term"), std::string::npos) << output_;
}

TEST_F(AgentFixture, WhatAWorkerStartedHasTheGraceTimeToo) {
  // The shell ends at once; the program that it runs saves its state first.
  start_shell(
      "sh -c 'trap \"sleep 0.3; echo saved; exit 0\" TERM; echo ready; while :; do sleep 0.02; done' & "
      "trap 'exit 1' TERM; wait");
  wait_for(Type::kOutput);
  control::Stop stop;
  stop.grace_ms = 20000;
  send(Type::kStop, control::encode(stop));
  EXPECT_EQ(wait_for(Type::kFinished).type, Type::kFinished);
  finish_output();
  EXPECT_NE(output_.find("saved"), std::string::npos) << output_;
}

TEST_F(AgentFixture, PauseStopsTheWorkersAndTheClockUntilResume) {
  const int pid = start({"sleep", "1000"});
  const auto state = [&] {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return stat ? stat->substr(stat->rfind(") ") + 2, 1) : "none";
  };
  const auto await = [&](const std::string& wanted) {
    const Deadline deadline = Clock::now() + std::chrono::seconds(5);
    while (state() != wanted && Clock::now() < deadline) ::usleep(2000);
    return state();
  };
  send(Type::kPause, "");
  EXPECT_EQ(await("T"), "T");
  const Deadline silent = Clock::now() + milliseconds(3000);  // the heartbeat timeout is 2 s
  while (Clock::now() < silent) ::usleep(10000);
  EXPECT_EQ(state(), "T");
  send(Type::kResume, "");
  EXPECT_EQ(await("S"), "S");
  const Deadline soon = Clock::now() + milliseconds(300);  // the pause must not count as silence
  while (Clock::now() < soon) ::usleep(10000);
  EXPECT_EQ(state(), "S");
  to_.reset();
  expect_all_gone_within(milliseconds(2500));
}

TEST_F(AgentFixture, APausedJobEndsWithDrun) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  send(Type::kPause, "");
  to_.reset();
  from_.reset();
  expect_all_gone_within(milliseconds(2500));
}

TEST_F(AgentFixture, BringsTorchsErrorFileAndTheTimeOfTheExit) {
  const auto before = std::chrono::nanoseconds(Clock::now().time_since_epoch());
  start_shell("printf '{\"message\": \"no\"}' > $TORCHELASTIC_ERROR_FILE; sleep 0.3; exit 5");
  const auto exited = control::decode<control::Exited>(wait_for(Type::kExited).body).value();
  EXPECT_EQ(exited.error_file, "{\"message\": \"no\"}");
  EXPECT_EQ(exited.out_of_memory, "");
  const std::chrono::nanoseconds exit_time(exited.time_ns), after(Clock::now().time_since_epoch());
  EXPECT_GE(exit_time, before + milliseconds(300)) << "not the time of the start";
  EXPECT_LE(exit_time, after);
}

TEST_F(AgentFixture, AnswersPings) {
  control::Ping ping;
  ping.sent_ns = 42;
  const auto before = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
  send(Type::kPing, control::encode(ping));
  const auto pong = control::decode<control::Pong>(wait_for(Type::kPong).body).value();
  EXPECT_EQ(pong.sent_ns, 42u);
  EXPECT_GE(pong.host_ns, before);  // the host is this one
}

TEST_F(AgentFixture, RelaysTwoListenersByNumber) {
  const auto listen = [this](bool for_horovod) {
    control::RelayListen order;
    order.for_horovod = for_horovod;
    send(Type::kRelayListen, control::encode(order));
    return control::decode<control::Port>(wait_for(Type::kRelayListening).body).value();
  };
  const auto connected = [](int port) {
    rendezvous::BlockingDeadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    return rendezvous::connect_tcp("127.0.0.1", port, deadline);
  };
  const auto opened = [this] {
    return control::decode<control::Relay>(wait_for(Type::kRelayOpen).body).value().connection;
  };
  const control::Port horovods = listen(true), druns = listen(false);
  const auto first = connected(horovods.port);
  EXPECT_EQ(opened(), rendezvous::kFirstHorovodRelay);
  const auto second = connected(druns.port);
  EXPECT_EQ(opened(), 1u);
  ASSERT_TRUE(first && second);
  control::Relay data;
  data.connection = rendezvous::kFirstHorovodRelay;
  data.bytes = "for Horovod";
  send(Type::kRelayData, control::encode(data));
  rendezvous::BlockingDeadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  EXPECT_EQ(rendezvous::receive_exactly(first->get(), data.bytes.size(), deadline).value_or(""), data.bytes);
  EXPECT_EQ(listen(true).error, "it listens for this relay already");
}

TEST_F(AgentFixture, SaysWhatItsHostIsLike) {
  control::AskFacts ask;
  ask.argv = {"sh", "-c", "true"};
  ask.working_directory = "/";
  ask.environment["PATH"] = "/usr/bin:/bin";
  ask.tool_ms = 8000;
  send(Type::kAskFacts, control::encode(ask));
  const auto facts = control::decode<control::Facts>(wait_for(Type::kFacts).body).value().facts;
  EXPECT_EQ(facts.versions.count("kernel"), 1u);
  EXPECT_EQ(facts.versions.count("glibc"), 1u);
  EXPECT_EQ(facts.versions.count("command"), 1u);
  EXPECT_EQ(facts.command, "/usr/bin/sh");
  EXPECT_LT(std::abs(facts.monotonic_ns - monotonic_ns()), 10'000'000'000);
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_LT(std::abs(facts.realtime_ns - std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count()),
            10'000'000'000);
  ASSERT_FALSE(facts.disks.empty());
  EXPECT_EQ(facts.disks[0].path, "/");
  // Requests are answered one at a time, but more than once.
  send(Type::kAskFacts, control::encode(ask));
  EXPECT_EQ(wait_for(Type::kFacts).type, Type::kFacts);
}

TEST_F(AgentFixture, WarnsOfANameThatPeersOfHorovodCanNotReach) {
  const testing::TempFolder folder;
  folder.write("getent", "#!/bin/sh\necho \"127.0.1.1  STREAM $2\"\n");
  ASSERT_EQ(::chmod(folder.path("getent").c_str(), 0755), 0);
  ASSERT_TRUE(prepare({"sleep", "1000"}, "/", folder.path("") + ":/usr/bin:/bin").problems.empty());
  control::Spawn order;
  control::WorkerSpec worker;
  worker.environment = {{"HOROVOD_HOSTNAME", "here"}, {"HOROVOD_CROSS_SIZE", "2"}};
  order.workers.push_back(worker);
  order.start_ms = 30'000;
  send(Type::kSpawn, control::encode(order));
  const auto notice = control::decode<control::Text>(wait_for(Type::kNotice).body);
  ASSERT_TRUE(notice.has_value());
  EXPECT_EQ(notice->text.substr(0, 41), "its own name stands for 127.0.1.1 alone, ");
}

TEST_F(AgentFixture, AHangingProgramEndsWithTheChannel) {
  control::AskFacts ask;
  ask.environment["PATH"] = DRUN_TEST_FAKES ":/usr/bin:/bin";
  ask.environment["DRUN_FAKE_GPUS"] = "hang";
  ask.tool_ms = 60000;
  send(Type::kAskFacts, control::encode(ask));
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  const auto hangs = [] {
    for (const pid_t pid : agent::descendants()) {
      const auto name = read_file("/proc/" + std::to_string(pid) + "/comm", 64);
      if (name && *name == "sleep\n") return true;
    }
    return false;
  };
  while (!hangs() && Clock::now() < deadline) ::usleep(2000);
  ASSERT_TRUE(hangs());
  to_.reset();
  expect_all_gone_within(milliseconds(5000));
}

TEST_F(AgentFixture, EndOfTheChannelEndsTheWholeFamily) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  to_.reset();
  from_.reset();
  expect_all_gone_within(milliseconds(2500));
}

TEST_F(AgentFixture, SilenceOfDrunEndsTheWholeFamily) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  expect_all_gone_within(milliseconds(5000));  // heartbeat timeout 2 s, grace 0.5 s
}

TEST_F(AgentFixture, DeathOfTheAgentEndsTheWholeFamily) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  ::kill(agent_pid_, SIGKILL);
  expect_all_gone_within(milliseconds(2500));
}

TEST_F(AgentFixture, DeathOfTheGuardEndsTheWholeFamily) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  ::kill(pid_, SIGKILL);
  expect_all_gone_within(milliseconds(3000));
}

TEST_F(AgentFixture, NonsenseOnTheChannelEndsTheJob) {
  start_shell(kFamily);
  wait_for(Type::kOutput);
  write_all(to_.get(), std::string("\xff\xff\xff\xff garbage", 12));
  expect_all_gone_within(milliseconds(2500));
}

TEST_F(AgentFixture, LeavesNoSocketBehind) {
  start_shell("echo $DRUN_AGENT; exec sleep 1000");
  const auto line = control::decode<control::Output>(wait_for(Type::kOutput).body)->bytes;
  const std::string path = line.substr(0, line.find('\n'));
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  to_.reset();
  expect_all_gone_within(milliseconds(2500));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST_F(AgentFixture, DeathOfTheAgentLeavesNoSocketBehind) {
  start_shell("echo $DRUN_AGENT; exec sleep 1000");
  const auto line = control::decode<control::Output>(wait_for(Type::kOutput).body)->bytes;
  const std::filesystem::path path = line.substr(0, line.find('\n'));
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  ::kill(agent_pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

// A process without an agent among its ancestors, like one that `docker exec` starts. Killed at the end of the test.
class Stranger {
 public:
  explicit Stranger(std::vector<std::string> environment) {
    std::vector<char*> words;
    for (auto& word : environment) words.push_back(word.data());
    words.push_back(nullptr);
    auto started = make_pipe();  // closed by the exec; from then on the process has that environment
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execle("/bin/sleep", "sleep", "1000", nullptr, words.data());
      ::_exit(126);
    }
    started->write.reset();
    char byte = 0;
    [[maybe_unused]] const ssize_t n = ::read(started->read.get(), &byte, 1);
  }
  ~Stranger() {
    if (!ended_) ::kill(pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  bool ended() {
    if (!ended_) ended_ = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return ended_;
  }
  bool ends_within(milliseconds limit) {
    const Deadline deadline = Clock::now() + limit;
    while (!ended() && Clock::now() < deadline) ::usleep(2000);
    return ended();
  }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
};

TEST_F(AgentFixture, EndsStrangersThatHaveItsJobInTheirEnvironment) {
  Stranger ours({"A=b", "DRUN_JOB_ID=" + job_id()});
  Stranger of_another_agent({"DRUN_JOB_ID=" + job_id(), "DRUN_AGENT=/tmp/elsewhere/agent"});
  Stranger of_another_job({"DRUN_JOB_ID=0123456789abcdee"});
  Stranger nobodys({"NOT_DRUN_JOB_ID=" + job_id()});
  start_shell("exec sleep 1000");
  EXPECT_FALSE(ours.ended());
  control::Stop stop;
  send(Type::kStop, control::encode(stop));
  EXPECT_EQ(wait_for(Type::kFinished).type, Type::kFinished);
  EXPECT_TRUE(ours.ends_within(milliseconds(1000)));
  for (Stranger* other : {&of_another_agent, &of_another_job, &nobodys}) EXPECT_FALSE(other->ended());
}

TEST_F(AgentFixture, DeathOfTheAgentEndsItsStrangers) {
  Stranger ours({"DRUN_JOB_ID=" + job_id()});
  start_shell("exec sleep 1000");
  ::kill(agent_pid_, SIGKILL);
  EXPECT_TRUE(ours.ends_within(milliseconds(2500)));
}

}  // namespace
}  // namespace drun
