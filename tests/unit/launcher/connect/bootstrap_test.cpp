#include "launcher/connect/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_channel.h"
#include "tests/fakes/virtual_time.h"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transport::Phase;

// A login that runs the bootstrap command: the test plays what it prints, and the agent.
class Bootstrap : public ::testing::Test {
 protected:
  Bootstrap() {
    far_.takes_raw_bytes = true;
    agent_.bytes = "the program";
    agent_.machine = "x86_64";
    on_phase_ = [this](Phase phase) { phases_.push_back(phase); };
    asio::co_spawn(io_, bring(), [](std::exception_ptr e) { EXPECT_FALSE(e); });
    time_.settle();
  }
  ~Bootstrap() override {
    channel_->close();
    time_.settle();
  }

  Task<void> bring() {
    control::FrameParser parser;
    std::string nonce = "abc123", host = "node1", login = "ssh -p 12345 node1";
    auto hello = co_await bring_agent(*channel_, agent_, std::move(nonce), std::move(host), std::move(login), parser,
                                      on_cached_, &on_phase_);
    result_ = hello ? "hello of pid " + std::to_string(hello->pid) : hello.error().message();
    context_ = hello ? "" : hello.error().context;
    hint_ = hello ? "" : hello.error().hint;
  }
  void print(const std::string& text) {
    far_.write(text);
    time_.settle();
  }
  static std::string hello(std::uint16_t version = control::kVersion) {
    control::Hello m;
    m.version = version;
    m.pid = 42;
    return std::string(control::kMagic) + control::encode_frame(control::Type::kHello, control::encode(m));
  }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  testing::FakeAgent far_{io_};
  std::unique_ptr<transport::Channel> channel_ = far_.channel();
  AgentBinary agent_;
  transport::OnPhase on_phase_;
  const std::function<void(std::string)> on_cached_ = [this](std::string path) { cached_ = std::move(path); };
  std::vector<Phase> phases_;
  std::string result_, context_, hint_, cached_;
};

TEST_F(Bootstrap, AnAgentThatIsThereSaysHello) {
  print(hello());
  EXPECT_EQ(result_, "hello of pid 42");
  EXPECT_EQ(far_.raw, "") << "nothing was delivered";
}

TEST_F(Bootstrap, AnAgentOfTheHostsCacheThatDoesNotStartIsNamed) {
  print("DRUN-abc123-CACHED /home/me/.cache/drun/agent-0\n");
  EXPECT_EQ(cached_, "/home/me/.cache/drun/agent-0");
  far_.exit(126, "sh: ./agent-0: Exec format error\n");
  time_.settle();
  EXPECT_THAT(result_, HasSubstr("status 126): sh: ./agent-0: Exec format error"));
}

TEST_F(Bootstrap, OutputOfStartupFilesIsSkippedAndBytesMayComeOneByOne) {
  print("Welcome to node1!\nDRUN-other-NEED\n");
  for (const char c : hello()) print(std::string(1, c));
  EXPECT_EQ(result_, "hello of pid 42");
}

TEST_F(Bootstrap, AnAgentThatIsMissingIsDeliveredOnce) {
  print("motd\nDRUN-abc123-NEED\n");
  EXPECT_EQ(far_.raw, "the program");
  EXPECT_THAT(phases_, ElementsAre(Phase::kAgent, Phase::kDelivery, Phase::kAgent));
  print(hello());
  EXPECT_EQ(result_, "hello of pid 42");
}

TEST_F(Bootstrap, AHostGetsItCompressedAsItAsks) {
  agent_.gzip = "gzip;";
  agent_.zstd = "zstd;";
  print("DRUN-abc123-NEEDZST\n");
  EXPECT_EQ(far_.raw, "zstd;");
  print("DRUN-abc123-NEEDGZ\n");
  EXPECT_EQ(far_.raw, "zstd;gzip;") << "the first directory had no room";
  print(hello());
  EXPECT_EQ(result_, "hello of pid 42");
}

TEST_F(Bootstrap, AHostGetsNoMoreAgentsThanItHasPlacesForThem) {
  for (int i = 0; i < 4; ++i) print("DRUN-abc123-NEED\n");
  EXPECT_EQ(result_, "");
  print("DRUN-abc123-NEED\n");
  EXPECT_THAT(result_, HasSubstr("asked for too often"));
  EXPECT_EQ(far_.raw, "the programthe programthe programthe program");
}

class Refusal : public Bootstrap, public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(Refusal, IsNamed) {
  print(std::string("DRUN-abc123-") + GetParam().first + "\n");
  EXPECT_THAT(result_, HasSubstr(GetParam().second));
}

INSTANTIATE_TEST_SUITE_P(
    Hosts, Refusal,
    ::testing::Values(
        std::pair("MACHINE aarch64", "the processor type is aarch64, this drun brings an agent for x86_64"),
        std::pair("NOPLACE /home/me/.cache /tmp", "no place to put it that can be written and executed from (tried "),
        std::pair("FULL /tmp,", "the disk is full: no room for its 1 MiB in /tmp"),
        std::pair("BROKEN /tmp: the checksum differs", "delivery failed in /tmp: the checksum differs")));

TEST_F(Bootstrap, AnAgentOfAnotherVersionIsRefused) {
  print(hello(2));
  EXPECT_THAT(result_, HasSubstr("it speaks version 2, this drun " + std::to_string(control::kVersion)));
}

TEST_F(Bootstrap, AFirstMessageThatIsNoHelloIsRefused) {
  print(std::string(control::kMagic) + control::encode_frame(control::Type::kPong, ""));
  EXPECT_THAT(result_, HasSubstr("its first message is no hello"));
}

TEST_F(Bootstrap, AHostThatStartsSomethingElseIsShownAsItAnswered) {
  print("This account is currently not available.\n");
  far_.exit(1, "/usr/sbin/nologin: refused\n");
  time_.settle();
  EXPECT_THAT(result_, HasSubstr("no hello (the remote command ended with status 1): /usr/sbin/nologin: refused"));
  EXPECT_THAT(context_, HasSubstr("the host printed: This account is currently not available."));
  EXPECT_EQ(hint_, "does the login allow commands? ssh -p 12345 node1 uname -m");
}

TEST_F(Bootstrap, AFailedConnectionOfOpensshIsItsOwnError) {
  far_.exit(255, "ssh: connect to host node1 port 22: No route to host\n");
  time_.settle();
  EXPECT_THAT(result_, HasSubstr("node1: ssh: ssh: connect to host node1 port 22: No route to host"));
  EXPECT_EQ(hint_, "ssh -p 12345 node1 true");
}

// The words of OpenSSH 9.2.
TEST_F(Bootstrap, ADropBeforeTheBannerIsToldFromOtherFailures) {
  const std::string kex = "kex_exchange_identification: ", end = kex + "Connection closed by remote host\r\n",
                    of_host = "Connection closed by 10.77.0.2 port 12345\r\n",
                    of_proxy = "Connection closed by UNKNOWN port 65535\r\n";
  const auto dropped = [this](int status, const std::string& words) {
    far_.exit(status, words);
    return was_dropped(*channel_);
  };
  EXPECT_TRUE(dropped(255, end + of_host)) << "by the host";
  EXPECT_TRUE(dropped(255, kex + "read: Connection reset by peer\r\nConnection reset by 10.77.0.2 port 12345\r\n"));
  EXPECT_TRUE(dropped(255, "ssh_exchange_identification: Connection closed by remote host\r\n")) << "by an old ssh";
  EXPECT_TRUE(dropped(255, "Authorized users only.\r\n" + end + of_host + end + of_proxy)) << "by the jump host";
  EXPECT_TRUE(dropped(255, end + of_proxy)) << "by the host behind the jump host";
  EXPECT_TRUE(dropped(255, "Warning: Permanently added 'node1' (ED25519) to the list of known hosts.\r\n" + end));
  EXPECT_FALSE(dropped(255, "Host key verification failed.\r\n" + end + of_proxy)) << "the jump host can't be used";
  EXPECT_FALSE(dropped(255, "Host key verification failed.\r\n" + end)) << "the same with LogLevel ERROR";
  EXPECT_FALSE(dropped(255, "no way out\n" + end + of_proxy)) << "the proxy has failed";
  EXPECT_FALSE(dropped(255, "root@node1: Permission denied (publickey).\r\n"));
  EXPECT_FALSE(dropped(1, end + of_host)) << "words of the host";
}

TEST_F(Bootstrap, AHostThatPrintsForEverIsGivenUp) {
  for (int i = 0; i < 50 && result_.empty(); ++i) print(std::string(100'000, 'y') + "\n");
  EXPECT_THAT(result_, HasSubstr("no hello"));
}

}  // namespace
}  // namespace drun::launcher
