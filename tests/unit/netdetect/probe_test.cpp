// Real sockets on loopback.
#include "netdetect/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "base/fd.h"
#include "netdetect/proof.h"
#include "tests/unit/netdetect/probing.h"

namespace drun::netdetect::testing {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kShort{200};

class Probe : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listener = ProbeListener::start(loop_.io().get_executor(), kToken);
    ASSERT_TRUE(listener) << listener.error().message();
    listener_ = std::move(*listener);
  }
  void TearDown() override { EXPECT_TRUE(!listener_ || loop_.stop(*listener_)); }

  tcp::endpoint endpoint() const {
    return {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(listener_->port())};
  }

  Loop loop_;
  std::unique_ptr<ProbeListener> listener_;
};

// Misbehavior of a server that accepts one connection.
enum class Stranger { kSilent, kEchoes, kGarbage, kCloses, kShortAnswer };

Task<void> be_stranger(std::shared_ptr<tcp::acceptor> acceptor, Stranger how, std::shared_ptr<tcp::socket> socket) {
  const auto [accept_error] = co_await acceptor->async_accept(*socket, as_result);
  if (accept_error || how == Stranger::kSilent) co_return;
  std::string data(kHelloBytes, '\0');
  const auto buffer = asio::buffer(data);
  const auto [read_error, n] = co_await asio::async_read(*socket, buffer, as_result);
  if (!read_error && how == Stranger::kGarbage) data = "220 mail.example.org ESMTP ready\r\n";
  if (!read_error && how == Stranger::kShortAnswer) data = "hello";
  if (!read_error && how != Stranger::kCloses) {
    const auto answer = asio::buffer(data);
    co_await asio::async_write(*socket, answer, as_result);
  }
  if (how == Stranger::kCloses || how == Stranger::kShortAnswer) socket->close();
}

ProbeResult probe_stranger(Loop& loop, Stranger how) {
  const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
  auto acceptor = std::make_shared<tcp::acceptor>(loop.io(), any);
  auto socket = std::make_shared<tcp::socket>(loop.io());
  TaskGroup group(loop.io().get_executor());
  group.spawn(be_stranger(acceptor, how, socket));
  const auto result = loop.probe("127.0.0.1", acceptor->local_endpoint().port(),
                                 how == Stranger::kSilent ? kShort : std::chrono::seconds(5));
  acceptor->close();
  socket->close();
  EXPECT_TRUE(loop.run(group.join()));
  return result;
}

TEST_F(Probe, ReachesAPeer) {
  const auto result = loop_.probe("127.0.0.1", listener_->port());
  EXPECT_EQ(result.outcome, ProbeOutcome::kReached) << result.detail;
  EXPECT_EQ(result.id, 1u);
  EXPECT_EQ(result.source, "127.0.0.1");
  EXPECT_GT(result.micros, 0u);
  EXPECT_EQ(result.detail, "");
}

TEST_F(Probe, ReachesAPeerOverIpv6) {
  const auto result = loop_.probe("::1", listener_->port());
  if (result.outcome == ProbeOutcome::kUnreachable) GTEST_SKIP() << "this machine has no IPv6: " << result.detail;
  EXPECT_EQ(result.outcome, ProbeOutcome::kReached) << result.detail;
  EXPECT_EQ(result.source, "::1");
}

TEST_F(Probe, IsRefusedWhereNobodyListens) {
  const int port = listener_->port();
  ASSERT_TRUE(loop_.stop(*listener_));
  const auto result = loop_.probe("127.0.0.1", port);
  EXPECT_EQ(result.outcome, ProbeOutcome::kRefused);
  EXPECT_EQ(result.source, "");
  EXPECT_FALSE(result.detail.empty());
}

TEST_F(Probe, DoesNotTakeAPeerOfAnotherJob) {
  const auto result = loop_.probe("127.0.0.1", listener_->port(), std::chrono::seconds(5), "fedcba9876543210");
  EXPECT_EQ(result.outcome, ProbeOutcome::kWrongPeer);
  EXPECT_THAT(result.detail, HasSubstr("no proof"));
}

TEST_F(Probe, NeverTriesLinkLocalAddressesOrNames) {
  EXPECT_EQ(loop_.probe("fe80::1", listener_->port()).outcome, ProbeOutcome::kUnreachable);
  EXPECT_EQ(loop_.probe("169.254.1.1", listener_->port()).outcome, ProbeOutcome::kUnreachable);
  for (const std::string bad : {"", "localhost", "fe80::1%lo", "127.0.0.1:80"}) {
    EXPECT_EQ(loop_.probe(bad, listener_->port()).outcome, ProbeOutcome::kError) << bad;
  }
  EXPECT_EQ(loop_.probe("127.0.0.1", 0).outcome, ProbeOutcome::kError);
  EXPECT_EQ(loop_.probe("127.0.0.1", listener_->port(), kShort, "short").outcome, ProbeOutcome::kError);
}

TEST(ProbeStranger, ThatSaysNothingIsNoPeer) {
  Loop loop;
  const auto result = probe_stranger(loop, Stranger::kSilent);
  EXPECT_EQ(result.outcome, ProbeOutcome::kWrongPeer);
  EXPECT_EQ(result.detail, "connected, but no proof within 200 ms");
}

TEST(ProbeStranger, ThatEchoesIsNoPeer) {
  Loop loop;
  EXPECT_EQ(probe_stranger(loop, Stranger::kEchoes).detail, "connected, but the proof is wrong");
}

TEST(ProbeStranger, ThatSendsGarbageIsNoPeer) {
  Loop loop;
  EXPECT_EQ(probe_stranger(loop, Stranger::kGarbage).outcome, ProbeOutcome::kWrongPeer);
}

TEST(ProbeStranger, ThatClosesIsNoPeer) {
  Loop loop;
  EXPECT_EQ(probe_stranger(loop, Stranger::kCloses).outcome, ProbeOutcome::kWrongPeer);
  EXPECT_EQ(probe_stranger(loop, Stranger::kShortAnswer).outcome, ProbeOutcome::kWrongPeer);
}

TEST(ProbeTimeout, ComesWhenTheBacklogIsFull) {
  const Fd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(server.get(), 0), 0);
  ASSERT_EQ(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<Fd> fillers;
  for (int i = 0; i < 8; ++i) {
    fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(fillers.back().get(), reinterpret_cast<sockaddr*>(&address), size);
  }
  Loop loop;
  const auto began = Clock::now();
  const auto result = loop.probe("127.0.0.1", ntohs(address.sin_port), kShort);
  EXPECT_EQ(result.outcome, ProbeOutcome::kTimedOut) << result.detail;
  EXPECT_EQ(result.detail, "no answer within 200 ms");
  EXPECT_GE(Clock::now() - began, kShort);
}

TEST_F(Probe, TriesManyTargetsAFewAtATimeAndKeepsTheirOrder) {
  std::vector<ProbeTarget> targets;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const bool good = i % 3 != 0;
    targets.push_back({1000 + i, "127.0.0." + std::to_string(i + 1), good ? listener_->port() : 1});
  }
  const auto results = loop_.probe(targets, std::chrono::seconds(10), 32);
  ASSERT_EQ(results.size(), 200u);
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(results[i].id, 1000 + i);
    EXPECT_EQ(results[i].outcome, i % 3 != 0 ? ProbeOutcome::kReached : ProbeOutcome::kRefused) << results[i].detail;
  }
}

TEST_F(Probe, WaitsForSlowTargetsInParallel) {
  const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
  const tcp::acceptor silent(loop_.io(), any);  // the kernel completes the connections; no process answers
  const std::vector<ProbeTarget> targets(32, {1, "127.0.0.1", silent.local_endpoint().port()});
  const auto began = Clock::now();
  for (const auto& result : loop_.probe(targets, milliseconds(300), 32)) {
    EXPECT_EQ(result.outcome, ProbeOutcome::kWrongPeer);
  }
  EXPECT_LT(Clock::now() - began, milliseconds(300) * 8);
}

TEST_F(Probe, AcceptsNoTargets) { EXPECT_TRUE(loop_.probe({}, kShort, 32).empty()); }

TEST_F(Probe, AnswersWhileStrangersHoldMoreConnectionsThanItKeeps) {
  std::vector<tcp::socket> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.emplace_back(loop_.io());
    boost::system::error_code ec;
    strangers.back().connect(endpoint(), ec);
    ASSERT_FALSE(ec) << ec.message();
    if (i % 2) strangers.back().write_some(asio::buffer("GET / HTTP/1.0\r\n", 16), ec);
    loop_.io().restart();
    loop_.io().poll();
  }
  const auto result = loop_.probe("127.0.0.1", listener_->port());
  EXPECT_EQ(result.outcome, ProbeOutcome::kReached) << result.detail;
}

// Sends `hello` and reads until the other side closes.
Task<void> converse(tcp::endpoint to, std::string hello, std::shared_ptr<std::string> answer) {
  tcp::socket socket(co_await asio::this_coro::executor);
  co_await socket.async_connect(to, as_result);
  const auto out = asio::buffer(hello);
  co_await asio::async_write(socket, out, as_result);
  const auto in = asio::dynamic_buffer(*answer);
  co_await asio::async_read(socket, in, as_result);
}

TEST_F(Probe, TellsStrangersNothing) {
  const std::string nonce = make_nonce();
  const std::vector<std::string> hellos = {
      nonce + std::string(kProofBytes, 'x'), nonce + make_proof(kToken, Side::kServer, nonce, listener_->port()),
      nonce + make_proof(kToken, Side::kClient, nonce, listener_->port() ^ 1), std::string(1000, 'A')};
  for (const auto& hello : hellos) {
    auto answer = std::make_shared<std::string>();
    EXPECT_TRUE(loop_.run(converse(endpoint(), hello, answer)));
    EXPECT_EQ(*answer, "");
  }
  auto answer = std::make_shared<std::string>();
  const std::string good = nonce + make_proof(kToken, Side::kClient, nonce, listener_->port());
  EXPECT_TRUE(loop_.run(converse(endpoint(), good, answer)));
  EXPECT_EQ(*answer, make_proof(kToken, Side::kServer, nonce, listener_->port()));
}

TEST_F(Probe, ClosesWhoSaysTooLittleForTooLong) {
  auto answer = std::make_shared<std::string>();
  const auto began = Clock::now();
  EXPECT_TRUE(loop_.run(converse(endpoint(), "half", answer)));
  EXPECT_GE(Clock::now() - began, std::chrono::seconds(2));
  EXPECT_EQ(*answer, "");
}

TEST_F(Probe, ListenerStopsWithOpenConnections) {
  tcp::socket stranger(loop_.io());
  stranger.connect(endpoint());
  loop_.io().restart();
  loop_.io().poll();
  listener_->stop();
  listener_->stop();
  const auto began = Clock::now();
  EXPECT_TRUE(loop_.run(listener_->join()));
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(2));
}

TEST(ProbeListener, RefusesATokenOfTheWrongSize) {
  Loop loop;
  EXPECT_FALSE(ProbeListener::start(loop.io().get_executor(), "short"));
}

}  // namespace
}  // namespace drun::netdetect::testing
