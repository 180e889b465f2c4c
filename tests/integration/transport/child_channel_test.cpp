// Channels over child processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"
#include "base/text.h"
#include "tests/integration/transport/sshd_fixture.h"
#include "transport/child_channel.h"

namespace drun::transport::testing {
namespace {

class ChildChannel : public ::testing::Test {
 protected:
  std::unique_ptr<Channel> spawn(const std::string& script) {
    auto channel = spawn_child_channel(loop_.io, {"sh", "-c", script});
    EXPECT_TRUE(channel) << channel.error().message();
    return std::move(*channel);
  }
  Outcome run(const std::string& script, const std::string& input = "") {
    return loop_.run(converse(loop_.io, spawn(script), input));
  }
  static Task<Clock::duration> close_and_join(std::unique_ptr<Channel> channel) {
    const auto start = Clock::now();
    channel->close();
    co_await channel->join();
    co_return Clock::now() - start;
  }
  std::string read_line(Channel& channel) {
    std::vector<char> buffer(256);
    const auto n = loop_.run(channel.read_some(asio::buffer(buffer)));
    return n ? std::string(buffer.data(), *n) : n.error().message();
  }
  Loop loop_;
};

TEST_F(ChildChannel, CarriesBytesStatusAndStderr) {
  const auto outcome = run("cat; echo done >&2; exit 3", std::string(1u << 20, 'x'));
  EXPECT_EQ(outcome.out, std::string(1u << 20, 'x'));
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_EQ(outcome.err, "done\n");
}

TEST_F(ChildChannel, KeepsTheLastFourKilobytesOfStderr) {
  const auto outcome = run("head -c 300000 /dev/zero | tr '\\0' 'e' >&2; printf END >&2");
  EXPECT_EQ(outcome.err.size(), 4096u);
  EXPECT_TRUE(outcome.err.ends_with("eeEND"));
}

TEST_F(ChildChannel, TellsASignal) { EXPECT_EQ(run("kill -9 $$").exit_status, 137); }

TEST_F(ChildChannel, LeavesAnAgentTheTimeForItsOwnEnd) {
  ChildProcess::Ending ending;
  ending.is_agent = true;
  ending.kill_delay = std::chrono::seconds(30);
  // The child notices EOF, and needs longer than the usual timeout; a signal such as SIGTERM would end it at once.
  auto channel = spawn_child_channel(loop_.io, {"sh", "-c", "echo; read x; sleep 3"}, ending);
  ASSERT_TRUE(channel);
  EXPECT_EQ(read_line(**channel), "\n");
  EXPECT_GE(loop_.run(close_and_join(std::move(*channel))), std::chrono::milliseconds(2900));
}

TEST_F(ChildChannel, FailsWhereThereIsNothingToExecute) {
  const auto missing = spawn_child_channel(loop_.io, {"no-such-program-here"});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().cause.find("no-such-program-here"), std::string::npos);
  EXPECT_FALSE(spawn_child_channel(loop_.io, {"/"}));
}

TEST_F(ChildChannel, GivesTheChildNothingButStdio) {
  // `ls` itself opens one descriptor for the folder.
  EXPECT_EQ(run("exec ls /proc/self/fd").out, "0\n1\n2\n3\n");
}

TEST_F(ChildChannel, GivesTheChildDefaultSignalsAndASessionOfItsOwn) {
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  const auto outcome = run("grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\n'; ps -o pid=,pgid=,sid= -p $$");
  ::signal(SIGUSR1, before);
  EXPECT_TRUE(starts_with(outcome.out, "SigBlk:\t0000000000000000SigIgn:\t0000000000000000")) << outcome.out;
  int pid = 0, group = -1, session = -1;
  const std::string tail = outcome.out.substr(std::string("SigBlk:\t0000000000000000SigIgn:\t0000000000000000").size());
  ASSERT_EQ(std::sscanf(tail.c_str(), "%d %d %d", &pid, &group, &session), 3) << tail;
  EXPECT_EQ(pid, group);
  EXPECT_EQ(pid, session) << "it could ask on the terminal";
}

TEST_F(ChildChannel, ATermIsEnoughForMost) {
  auto channel = spawn("echo up; sleep 100");
  EXPECT_EQ(read_line(*channel), "up\n");
  EXPECT_LT(loop_.run(close_and_join(std::move(channel))), std::chrono::milliseconds(1900)) << "KILL comes after 2 s";
}

TEST_F(ChildChannel, AChildThatIgnoresTermIsKilledWithItsGroup) {
  auto channel = spawn("trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $!; while :; do sleep 1; done");
  const auto line = read_line(*channel);
  const auto grandchild = static_cast<pid_t>(std::stol(line));
  const auto took = loop_.run(close_and_join(std::move(channel)));
  EXPECT_GE(took, std::chrono::milliseconds(1900));
  EXPECT_LT(took, std::chrono::seconds(4));
  const auto state = [&] { return read_file("/proc/" + std::to_string(grandchild) + "/stat").value_or(" Z "); };
  // It has the signal, but may not have run since.
  for (int i = 0; i < 500 && state().find(" Z ") == std::string::npos; ++i) ::usleep(10000);
  EXPECT_NE(state().find(" Z "), std::string::npos) << state();
}

TEST_F(ChildChannel, CloseEndsAPendingRead) {
  auto channel = spawn("sleep 100");
  auto body = [](asio::io_context& io, std::unique_ptr<Channel> c) -> Task<Errc> {
    auto closer = [](Channel& ch) -> Task<void> {
      ch.close();
      co_return;
    };
    TaskGroup group(io.get_executor());
    group.spawn(closer(*c));
    std::vector<char> buffer(16);
    const auto n = co_await c->read_some(asio::buffer(buffer));
    co_await group.join();
    co_await c->join();
    co_return n ? Errc::kNone : n.error().code;
  };
  EXPECT_EQ(loop_.run(body(loop_.io, std::move(channel))), Errc::kCanceled);
}

TEST_F(ChildChannel, AClosedStdinIsAnErrorOfWriteNotASignal) {
  auto channel = spawn("exec <&-; echo up; sleep 100");
  EXPECT_EQ(read_line(*channel), "up\n");
  const std::string bytes(1u << 20, 'x');
  const auto written = loop_.run(channel->write(asio::buffer(bytes)));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kClosed);
  loop_.run(close_and_join(std::move(channel)));
}

TEST_F(ChildChannel, AnEndOfStdoutIsSeenThoughTheChildLivesOn) {
  auto channel = spawn("exec >&-; sleep 100");
  const auto start = Clock::now();
  EXPECT_EQ(read_line(*channel), "");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(4));
  EXPECT_EQ(channel->exit_status(), -1);
  loop_.run(close_and_join(std::move(channel)));
}

TEST_F(ChildChannel, LaunchAgentWordsComeBeforeHostAndCommand) {
  const auto transport = make_openssh_transport(loop_.io, {"sh", "-c", "printf '%s|' \"$@\"", "hook"}, "");
  SshTarget target;
  target.alias = "host1";
  auto channel = loop_.open(*transport, target, "exec /bin/sh -c 'echo hi'");
  ASSERT_TRUE(channel);
  EXPECT_EQ(loop_.run(converse(loop_.io, std::move(*channel), "")).out, "host1|exec /bin/sh -c 'echo hi'|");
  target.user = "bob";
  target.user_by_item = true;
  channel = loop_.open(*transport, target, "x");
  ASSERT_TRUE(channel);
  EXPECT_EQ(loop_.run(converse(loop_.io, std::move(*channel), "")).out, "bob@host1|x|");
}

}  // namespace
}  // namespace drun::transport::testing
