// The contract of both transports, against a real sshd.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "base/text.h"
#include "tests/integration/transport/sshd_fixture.h"
#include "transport/child_channel.h"

namespace drun::transport::testing {
namespace {

enum class Kind { kLibssh, kOpenssh };

class Transports : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Transport> make() { return GetParam() == Kind::kLibssh ? loop_.libssh() : loop_.openssh(); }
  Outcome run(const SshTarget& target, const std::string& command, const std::string& input = "") {
    auto transport = make();
    auto channel = loop_.open(*transport, target, command);
    if (!channel) return Outcome{"", -1, "", channel.error().message()};
    return loop_.run(converse(loop_.io, std::move(*channel), input));
  }
  static int count_of(const std::string& text, const std::string& words) {
    int n = 0;
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++n;
    return n;
  }
  // libssh fails to open; ssh starts, and its error text is on stderr.
  std::string words_of(const Outcome& outcome) { return outcome.error + outcome.err; }

  Sshd sshd_;
  Loop loop_;
};

std::string random_bytes(std::size_t n) {
  std::mt19937 random(7);
  std::string out(n, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

Task<void> open_one(asio::io_context& io, Transport& transport, SshTarget target, int number, int& n_good) {
  const std::string command = "echo " + std::to_string(number);
  auto channel = co_await transport.open(target, command, Clock::now() + std::chrono::seconds(40));
  EXPECT_TRUE(channel) << channel.error().message();
  if (!channel) co_return;
  auto outcome = co_await converse(io, std::move(*channel), "");
  EXPECT_EQ(outcome.out, std::to_string(number) + "\n") << outcome.error << outcome.err;
  if (outcome.exit_status == 0) ++n_good;
}

// Opens `n` sessions at once. Returns the number of successful ones.
Task<int> open_all(asio::io_context& io, Transport& transport, SshTarget target, int n) {
  TaskGroup group(io.get_executor());
  int n_good = 0;
  for (int i = 0; i < n; ++i) group.spawn(open_one(io, transport, target, i, n_good));
  co_await group.join();
  co_return n_good;
}

TEST_P(Transports, RunsACommandAndTellsItsEnd) {
  const auto outcome = run(sshd_.target(), "echo out; echo err >&2; exit 7");
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.exit_status, 7);
  EXPECT_NE(outcome.err.find("err\n"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.error, "");
}

TEST_P(Transports, CarryBytesUnchangedBothWays) {
  const std::string bytes = random_bytes(8u << 20);
  const auto outcome = run(sshd_.target(), "exec cat", bytes);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_TRUE(outcome.out == bytes) << outcome.out.size();
}

TEST_P(Transports, CarryBytesUnchangedWhileKeysAreRenewed) {
  const Sshd sshd("LogLevel DEBUG1\nRekeyLimit 256K");
  const std::string bytes = random_bytes(1u << 20);
  const auto outcome = run(sshd.target(), "exec cat", bytes);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_TRUE(outcome.out == bytes) << outcome.out.size();
  EXPECT_GE(count_of(sshd.log(), "set_newkeys: rekeying"), 4) << sshd.log();
}

TEST_P(Transports, TellTheSignalThatEndedTheCommand) {
  const auto outcome = run(sshd_.target(), "kill -TERM $$; sleep 10");
  if (GetParam() == Kind::kLibssh) {
    EXPECT_EQ(outcome.exit_status, 128 + 15);
  } else {
    EXPECT_NE(outcome.exit_status, 0);
  }
}

TEST_P(Transports, CloseEndsTheRemoteCommand) {
  auto transport = make();
  const std::string mark = sshd_.folder().path("ended");
  auto channel = loop_.open(*transport, sshd_.target(), "echo up; cat >/dev/null; touch " + mark);
  ASSERT_TRUE(channel) << channel.error().message();
  std::vector<char> buffer(16);
  ASSERT_TRUE(loop_.run((*channel)->read_some(asio::buffer(buffer))));
  (*channel)->close();
  (*channel)->close();
  const auto start = Clock::now();
  auto joined = [](Channel& c) -> Task<bool> {
    co_await c.join();
    co_return true;
  };
  loop_.run(joined(**channel));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(4));
  const auto read = loop_.run((*channel)->read_some(asio::buffer(buffer)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCanceled);
  for (int i = 0; i < 500 && ::access(mark.c_str(), F_OK) != 0; ++i) ::usleep(10000);
  EXPECT_EQ(::access(mark.c_str(), F_OK), 0);
}

TEST_P(Transports, NoticeAtOnceThatThePeerWasKilled) {
  auto transport = make();
  auto channel = loop_.open(*transport, sshd_.target(), "echo up; sleep 100");
  ASSERT_TRUE(channel) << channel.error().message();
  std::vector<char> buffer(16);
  ASSERT_TRUE(loop_.run((*channel)->read_some(asio::buffer(buffer))));
  sshd_.kill_everything();
  const auto start = Clock::now();
  const auto outcome = loop_.run(converse(loop_.io, std::move(*channel), ""));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(outcome.exit_status == 255 || outcome.error.find("connection lost") != std::string::npos)
      << outcome.exit_status << " " << words_of(outcome);
}

TEST_P(Transports, SayThatThePortIsClosed) {
  const int port = free_port();
  const auto outcome = run(sshd_.target("Host box\n Port " + std::to_string(port)), "true");
  EXPECT_NE(words_of(outcome).find("efused"), std::string::npos) << words_of(outcome);
  EXPECT_NE(words_of(outcome).find(std::to_string(port)), std::string::npos);
}

TEST_P(Transports, SayThatTheNameHasNoAddress) {
  const auto outcome = run(sshd_.target("Host box\n HostName no-such-host.invalid"), "true");
  EXPECT_NE(words_of(outcome).find("no-such-host.invalid"), std::string::npos) << words_of(outcome);
}

TEST_P(Transports, RefuseAnUnknownHostKeyUnderYes) {
  const auto outcome = run(sshd_.target("StrictHostKeyChecking yes"), "echo in");
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(lower(words_of(outcome)).find("host key"), std::string::npos) << words_of(outcome);
}

TEST_P(Transports, StoreANewHostKeyOnceAndRefuseAChangedOne) {
  EXPECT_EQ(run(sshd_.target(), "echo in").out, "in\n");
  const std::string line = "[127.0.0.1]:" + std::to_string(sshd_.port()) + " " + sshd_.host_key_line() + "\n";
  EXPECT_EQ(sshd_.folder().read("known_hosts"), line);
  EXPECT_EQ(run(sshd_.target(), "echo in").out, "in\n");
  EXPECT_EQ(sshd_.folder().read("known_hosts"), line);
  // With a new key of the same type, or only of another type, the host is known and has a different key.
  for (const std::string type : {"ed25519", "ecdsa"}) {
    sshd_.restart_with_new_host_key(type);
    for (const std::string policy : {"yes", "ask", "accept-new", "no"}) {
      const auto outcome = run(sshd_.target("StrictHostKeyChecking " + policy), "echo in");
      // With `no` ssh by itself would log in by key, with a warning.
      EXPECT_EQ(outcome.out, "") << type << ", " << policy;
      EXPECT_NE(lower(words_of(outcome)).find("changed"), std::string::npos)
          << type << ", " << policy << ": " << words_of(outcome);
      EXPECT_EQ(sshd_.folder().read("known_hosts"), line) << type << ", " << policy;
    }
  }
}

TEST_P(Transports, RefuseALoginWithAWrongKey) {
  sshd_.folder().write("authorized_keys", "");
  const auto outcome = run(sshd_.target(), "echo in");
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(lower(words_of(outcome)).find("permission denied"), std::string::npos) << words_of(outcome);
}

TEST_P(Transports, GoThroughAProxyCommand) {
  const std::string bytes = random_bytes(1u << 20);
  // The proxy leaves a mark and connects to the server, whose port the config does not name.
  const std::string proxy = sshd_.proxy_command("open('" + sshd_.folder().path("used") + "', 'a').write('x')\n" +
                                                "sys.argv[2] = '" + std::to_string(sshd_.port()) + "'\n");
  const auto target = sshd_.target("Host box\n Port " + std::to_string(free_port()) + "\n " + proxy);
  const auto outcome = run(target, "exec cat", bytes);
  EXPECT_EQ(sshd_.folder().read("used"), "x");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_TRUE(outcome.out == bytes) << outcome.out.size();
}

TEST_P(Transports, GoThroughAJumpHost) {
  const auto outcome = run(sshd_.target("Host box\n ProxyJump box2"), "exec cat", "hello");
  EXPECT_EQ(outcome.out, "hello") << words_of(outcome);
  EXPECT_EQ(outcome.exit_status, 0);
  // The jump host is the same server, so it has two logins; the second comes from the server itself.
  EXPECT_EQ(count_of(sshd_.log(), "Accepted publickey for"), 2) << sshd_.log();
}

TEST_P(Transports, RefuseAnUnknownJumpHostByItsOwnPolicy) {
  const auto outcome = run(sshd_.target("Host box\n ProxyJump box2\nHost box2\n StrictHostKeyChecking yes"), "echo in");
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(words_of(outcome).find("ost key verification failed"), std::string::npos) << words_of(outcome);
  EXPECT_EQ(sshd_.folder().read("known_hosts"), "");
}

TEST_P(Transports, CarryTheWordsOfAProxyThatFails) {
  const auto outcome = run(sshd_.target("ProxyCommand sh -c 'echo no way out >&2; exit 1'"), "true");
  EXPECT_NE(words_of(outcome).find("no way out"), std::string::npos) << words_of(outcome);
}

// With the client of OpenSSH each session would be an ssh, and another to the jump host.
class LibsshAlone : public Transports {};

TEST_P(LibsshAlone, OpensManySessionsThroughAJumpHost) {
  auto transport = make();
  const auto target = sshd_.target("Host box\n ProxyJump box2");
  EXPECT_EQ(loop_.run(open_all(loop_.io, *transport, target, 24)), 24);
}

TEST_P(Transports, OpenManySessionsAtOnce) {
  // sshd drops connections from the tenth on (MaxStartups): the libssh transport retries, OpenSSH's client doesn't.
  const int n_sessions = GetParam() == Kind::kLibssh ? 32 : 8;
  auto transport = make();
  const auto target = sshd_.target();
  EXPECT_EQ(loop_.run(open_all(loop_.io, *transport, target, n_sessions)), n_sessions);
  const std::string line = "[127.0.0.1]:" + std::to_string(sshd_.port()) + " " + sshd_.host_key_line() + "\n";
  if (GetParam() == Kind::kOpenssh) return;  // its clients don't know of each other
  EXPECT_EQ(sshd_.folder().read("known_hosts"), line);
  EXPECT_EQ(loop_.notices.size(), 1u);
}

// Each policy is in a block whose condition only OpenSSH evaluates.
TEST(OpensshTransport, HasThePolicyOfSshForTheLinesThatOnlySshEvaluates) {
  Sshd sshd;
  Loop loop;
  const auto transport = loop.openssh();
  const auto run = [&](const std::string& policy) {
    auto channel = loop.open(*transport, sshd.target("Match exec true\n StrictHostKeyChecking " + policy), "echo in");
    EXPECT_TRUE(channel);
    return loop.run(converse(loop.io, std::move(*channel), "")).out;
  };
  EXPECT_EQ(run("yes"), "");
  EXPECT_EQ(run("ask"), "in\n") << "as if none is set";
  EXPECT_EQ(run("yes"), "in\n");
  sshd.restart_with_new_host_key("ed25519");
  for (const std::string policy : {"yes", "ask", "accept-new", "no"}) EXPECT_EQ(run(policy), "") << policy;
}

std::string name_of(const ::testing::TestParamInfo<Kind>& test) {
  return test.param == Kind::kLibssh ? "Libssh" : "Openssh";
}

INSTANTIATE_TEST_SUITE_P(Over, Transports, ::testing::Values(Kind::kLibssh, Kind::kOpenssh), name_of);
INSTANTIATE_TEST_SUITE_P(Over, LibsshAlone, ::testing::Values(Kind::kLibssh), name_of);

}  // namespace
}  // namespace drun::transport::testing
