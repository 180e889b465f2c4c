// Real sockets on loopback. The listener has a thread of its own, because in a job it has a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "netdetect/link_echo.h"
#include "netdetect/link_measure.h"
#include "netdetect/link_wire.h"
#include "netdetect/proof.h"
#include "tests/unit/netdetect/own_namespace.h"
#include "tests/unit/netdetect/probing.h"

namespace drun::netdetect::testing {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Server {
 public:
  explicit Server(const std::string& token = kToken) {
    auto listener = LinkListener::start(loop_.io().get_executor(), token);
    if (!listener) return;
    listener_ = std::move(*listener);
    port_ = static_cast<std::uint16_t>(listener_->port());
    thread_ = std::thread([this] { loop_.io().run(); });
  }
  ~Server() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    asio::post(loop_.io(), [this] { listener_->stop(); });
    thread_.join();  // ends when the loop has no work left
    EXPECT_TRUE(loop_.run(listener_->join()));
  }
  std::uint16_t port() const { return port_; }

 private:
  Loop loop_;
  std::unique_ptr<LinkListener> listener_;
  std::thread thread_;
  std::uint16_t port_ = 0;
};

Task<void> measure_into(std::vector<LinkTarget> targets, std::string token, std::shared_ptr<Stopping> stopping,
                        std::shared_ptr<std::vector<LinkResult>> out) {
  *out = co_await measure_links(std::move(targets), std::move(token), stopping);
}

std::vector<LinkResult> measure(std::vector<LinkTarget> targets, const std::string& token = kToken,
                                std::shared_ptr<Stopping> stopping = std::make_shared<Stopping>(),
                                milliseconds stop_after = milliseconds(0)) {
  Loop loop;
  auto out = std::make_shared<std::vector<LinkResult>>();
  Timer timer(loop.io());
  if (stop_after.count() > 0) {
    timer.expires_after(stop_after);
    timer.async_wait([stopping](const boost::system::error_code&) { stopping->stop(); });
  }
  EXPECT_TRUE(loop.run(measure_into(std::move(targets), token, stopping, out)));
  return *out;
}

LinkTarget target_at(std::uint16_t port, const std::string& address = "127.0.0.1") {
  LinkTarget target;
  target.id = 7;
  target.address = address;
  target.port = port;
  return target;
}

LinkTarget streams_at(std::uint16_t port, std::uint32_t n, std::uint32_t ms) {
  LinkTarget target = target_at(port);
  target.n_streams = n;
  target.time_ms = ms;
  return target;
}

double seconds_of(const std::function<void()>& what) {
  const auto began = Clock::now();
  what();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

TEST(LinkMeasure, RoundTripsOnLoopback) {
  Server server;
  LinkTarget target = target_at(server.port());
  target.n_round_trips = 200;
  target.round_trips_ms = 5000;
  const auto results = measure({target});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].id, 7u);
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[0].n_round_trips, 200u);
  EXPECT_GT(results[0].rtt_min_us, 0);
  EXPECT_LE(results[0].rtt_min_us, results[0].rtt_median_us);
  EXPECT_LE(results[0].rtt_median_us, results[0].rtt_p99_us);
  RecordProperty("median_us", std::to_string(results[0].rtt_median_us));
}

Task<void> round_trips_into(LinkSocket socket, std::shared_ptr<RoundTrips> out) {
  *out = co_await measure_round_trips(socket, 100, milliseconds(100));
}

// Simulates a first message that is lost and retransmitted so late that there is no time for a second one.
TEST(LinkMeasure, OfASingleLateRoundTripTheShortestIsThatOfTheConnection) {
  Loop loop;
  tcp::acceptor acceptor(loop.io(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const auto socket = std::make_shared<tcp::socket>(loop.io());
  socket->connect(acceptor.local_endpoint());
  tcp::socket peer = acceptor.accept();
  std::thread late([&] {
    std::string message(kEchoBytes, '\0');
    asio::read(peer, asio::buffer(message));
    std::this_thread::sleep_for(milliseconds(300));
    asio::write(peer, asio::buffer(message));
  });
  const auto trips = std::make_shared<RoundTrips>();
  EXPECT_TRUE(loop.run(round_trips_into(socket, trips)));
  late.join();
  EXPECT_EQ(trips->n, 1u);
  EXPECT_GE(trips->median_us, 300e3);
  EXPECT_GT(trips->min_us, 0);
  EXPECT_LT(trips->min_us, 200e3);
}

TEST(LinkMeasure, NoRoundTripBeginsAfterTheLimit) {
  Server server;
  LinkTarget target = target_at(server.port());
  target.n_round_trips = 100000000;
  target.round_trips_ms = 50;
  std::vector<LinkResult> results;
  EXPECT_LT(seconds_of([&] { results = measure({target}); }), 3);
  EXPECT_GT(results.at(0).n_round_trips, 0u);
  EXPECT_LT(results[0].n_round_trips, 100000000u);
}

TEST(LinkMeasure, BothDirectionsAtOnce) {
  Server server;
  for (const std::uint32_t n : {1u, 4u}) {
    SCOPED_TRACE(n);
    const auto results = measure({streams_at(server.port(), n, 600)});
    EXPECT_EQ(results.at(0).error, "");
    for (const Rate& rate : {results[0].forward, results[0].backward}) {
      EXPECT_EQ(rate.n_streams, static_cast<int>(n));
      EXPECT_GT(rate.bits_per_second, 100e6);
      EXPECT_GT(rate.seconds, 0);
      EXPECT_LE(rate.seconds, 0.6);
      EXPECT_GT(rate.n_segments, 0u);
    }
  }
}

TEST(LinkMeasure, OneDirectionOnly) {
  Server server;
  LinkTarget to = streams_at(server.port(), 1, 600), from = streams_at(server.port(), 1, 600);
  to.receives = false;
  from.sends = false;
  const auto results = measure({to, from});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].error + results[1].error, "");
  EXPECT_GT(results[0].forward.bits_per_second, 0);
  EXPECT_EQ(results[0].backward.n_streams, 0);
  EXPECT_EQ(results[1].forward.n_streams, 0);
  EXPECT_GT(results[1].backward.bits_per_second, 0);
}

TEST(LinkMeasure, ARateIsNotExceeded) {
  Server server;
  for (const std::uint32_t n : {1u, 4u}) {
    SCOPED_TRACE(n);
    LinkTarget target = streams_at(server.port(), n, 600);
    target.max_rate = 80'000'000;
    const auto results = measure({target});
    EXPECT_EQ(results.at(0).error, "");
    EXPECT_LT(results[0].forward.bits_per_second, 88e6);
    EXPECT_LT(results[0].backward.bits_per_second, 88e6);
    EXPECT_GT(results[0].forward.bits_per_second, 30e6);
  }
}

TEST(LinkMeasure, OverIpv6FromAChosenAddress) {
  Server server;
  LinkTarget target = streams_at(server.port(), 1, 600);
  target.address = target.source = "::1";
  target.n_round_trips = 5;
  target.round_trips_ms = 1000;
  target.path_mtu = true;
  const auto results = measure({target});
  if (results.at(0).error.find("Cannot assign") != std::string::npos) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[0].n_round_trips, 5u);
  EXPECT_EQ(results[0].mtu_forward, 65535);
  EXPECT_GT(results[0].backward.bits_per_second, 0);
}

TEST(LinkMeasure, PathMtuOfLoopbackIsTheLargestPacket) {
  Server server;
  LinkTarget target = target_at(server.port());
  target.path_mtu = true;
  const auto results = measure({target});
  EXPECT_EQ(results.at(0).error, "");
  EXPECT_EQ(results[0].mtu_forward, 65535);
  EXPECT_EQ(results[0].mtu_backward, 65535);
}

TEST(LinkMeasure, AnotherTokenIsNoPeer) {
  Server server("another token...");
  const auto results = measure({streams_at(server.port(), 1, 100)});
  EXPECT_THAT(results.at(0).error, HasSubstr("no proof"));
}

TEST(LinkMeasure, AProofThatComesAgainIsRefused) {
  Server server;
  const std::string nonce = make_nonce();
  const std::string hello = nonce + make_proof(kToken, Side::kClient, nonce, server.port());
  for (const bool first : {true, false}) {
    asio::io_context io;
    tcp::socket socket(io);
    socket.connect(tcp::endpoint(asio::ip::address_v4::loopback(), server.port()));
    asio::write(socket, asio::buffer(hello));
    std::string reply(kProofBytes, '\0');
    boost::system::error_code ec;
    asio::read(socket, asio::buffer(reply), ec);
    EXPECT_EQ(!ec, first) << ec.message();
  }
}

TEST(LinkMeasure, NobodyThereIsAnErrorOfThatTargetOnly) {
  Server server;
  std::uint16_t closed = 0;
  {
    asio::io_context io;
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    closed = acceptor.local_endpoint().port();
  }
  const auto results = measure({streams_at(closed, 1, 100), streams_at(server.port(), 1, 100)});
  EXPECT_THAT(results.at(0).error, HasSubstr("refused"));
  EXPECT_EQ(results.at(1).error, "");
}

TEST(LinkMeasure, APeerThatGoesAwayIsAnErrorSoon) {
  Server server;
  std::thread ending([&] {
    std::this_thread::sleep_for(milliseconds(200));  // in the middle of the measurement
    server.stop();
  });
  std::vector<LinkResult> results;
  EXPECT_LT(seconds_of([&] { results = measure({streams_at(server.port(), 2, 10000)}); }), 5);
  ending.join();
  EXPECT_NE(results.at(0).error, "");
}

TEST(LinkMeasure, StopEndsItSoonInEveryPart) {
  Server server;
  for (int part = 0; part < 3; ++part) {
    SCOPED_TRACE(part);
    LinkTarget target = target_at(server.port());
    if (part == 0) {
      target.n_round_trips = 100000000;
      target.round_trips_ms = 9000;
    } else {
      target.n_streams = 2;
      target.time_ms = 10000;
      target.begin_in_ms = part == 2 ? 9000 : 0;
    }
    const auto stopping = std::make_shared<Stopping>();
    EXPECT_LT(seconds_of([&] { measure({target}, kToken, stopping, milliseconds(150)); }), 3);
  }
}

TEST(LinkMeasure, AStoppedListenerLeavesNothing) {
  auto server = std::make_unique<Server>();
  const std::uint16_t port = server->port();
  std::thread client([port] { measure({streams_at(port, 4, 8000)}); });
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LT(seconds_of([&] { server.reset(); }), 3);
  client.join();
}

// Measures the target against a listener, both in a network namespace of their own, where nothing else uses the
// loopback interface.
struct MeasureAlone {
  LinkTarget target;
  bool counts_drops = false;  // by the counter of the only rule in the nft table "t"

  static std::uint64_t n_dropped() {
    const std::unique_ptr<FILE, int (*)(FILE*)> rules(::popen("nft list table inet t", "r"), ::pclose);
    std::string text(4096, '\0');
    text.resize(rules ? std::fread(text.data(), 1, text.size(), rules.get()) : 0);
    const auto at = text.find("counter packets ");
    if (at == std::string::npos) throw std::runtime_error("no counter: " + text);
    return std::stoull(text.substr(at + std::string("counter packets ").size()));
  }

  static std::uint64_t bytes_on_loopback() {
    std::ifstream file("/proc/thread-self/net/dev");
    for (std::string line; std::getline(file, line);) {
      const auto at = line.find("lo:");
      if (at == std::string::npos) continue;
      std::istringstream fields(line.substr(at + 3));
      std::uint64_t received = 0;
      fields >> received;
      return received;
    }
    return 0;
  }

  // Returns the encoded result, then the number of bytes that crossed the interface meanwhile, then that of drops.
  std::string operator()() const {
    Server server;
    LinkTarget wish = target;
    wish.port = server.port();
    const std::uint64_t before = bytes_on_loopback();
    const auto results = measure({wish});
    ByteWriter out;
    encode(out, results);
    out.u64(bytes_on_loopback() - before);
    if (counts_drops) out.u64(n_dropped());
    return out.take();
  }
};

TEST(LinkNamespace, ARateIsNotExceededOnTheInterface) {
  constexpr double kRate = 40e6;
  for (const std::uint32_t n : {1u, 4u}) {
    SCOPED_TRACE(n);
    LinkTarget target = streams_at(0, n, 1000);
    target.max_rate = static_cast<std::uint64_t>(kRate);
    const auto run = in_own_namespace({"ip link set lo mtu 1500"}, MeasureAlone{target});
    DRUN_SKIP_UNLESS_ALLOWED(run);
    ByteReader in(run.output);
    const auto results = decode_link_results(in);
    const double moved = 8.0 * static_cast<double>(in.u64());
    ASSERT_TRUE(in.done());
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].error, "");
    EXPECT_GT(moved, kRate / 2);
    // Both directions, acknowledgments and the start, which is not paced.
    EXPECT_LT(moved, 2 * kRate * 1.25);
  }
}

// Returns the result of the only target, which must have been measured without an error.
LinkResult the_result(const std::string& output) {
  ByteReader in(output);
  auto results = decode_link_results(in);
  EXPECT_EQ(results.size(), 1u);
  results.resize(1);
  EXPECT_EQ(results[0].error, "");
  return results[0];
}

TEST(LinkNamespace, SegmentsOfAChosenSizeShareNoFrame) {
  constexpr double kRate = 20e6;
  LinkTarget target = streams_at(0, 2, 600);
  target.max_rate = static_cast<std::uint64_t>(kRate);
  target.segment_bytes = 1000;
  const std::vector<std::string> filter = {"nft add table inet t",
                                           "nft 'add chain inet t i { type filter hook input priority 0; }'",
                                           "nft add rule inet t i meta length gt 1052 counter drop"};
  const auto run = in_own_namespace(filter, MeasureAlone{target, true});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const LinkResult result = the_result(run.output);
  // Not by retransmissions, which a busy machine that acknowledges late causes without a loss.
  EXPECT_EQ(ByteReader(std::string_view(run.output).substr(run.output.size() - 8)).u64(), 0u) << "larger frames";
  for (const Rate& rate : {result.forward, result.backward}) {
    EXPECT_GT(rate.bits_per_second, kRate / 2);
    EXPECT_GE(static_cast<double>(rate.n_segments), rate.bits_per_second * rate.seconds / 8 / 1000);
  }
}

TEST(LinkNamespace, PathMtuIsWhatPassesAndNotWhatTheInterfaceTakes) {
  LinkTarget target = target_at(0);
  target.path_mtu = true;
  const std::vector<std::string> filter = {"ip link set lo mtu 9000", "nft add table inet t",
                                           "nft 'add chain inet t i { type filter hook input priority 0; }'",
                                           "nft add rule inet t i udp length gt 1410 drop"};  // 1430 with IP header
  const auto run = in_own_namespace(filter, MeasureAlone{target});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const LinkResult result = the_result(run.output);
  EXPECT_EQ(result.mtu_forward, 1430);
  EXPECT_EQ(result.mtu_backward, 1430);
}

TEST(LinkNamespace, WithoutDatagramsThereIsNoPathMtu) {
  LinkTarget target = target_at(0);
  target.path_mtu = true;
  target.n_round_trips = 5;
  target.round_trips_ms = 1000;
  const std::vector<std::string> filter = {"nft add table inet t",
                                           "nft 'add chain inet t i { type filter hook input priority 0; }'",
                                           "nft add rule inet t i meta l4proto udp drop"};
  const auto run = in_own_namespace(filter, MeasureAlone{target});
  DRUN_SKIP_UNLESS_ALLOWED(run);
  const LinkResult result = the_result(run.output);
  EXPECT_EQ(result.n_round_trips, 5u);
  EXPECT_EQ(result.mtu_forward, 0);
  EXPECT_EQ(result.mtu_backward, 0);
}

}  // namespace
}  // namespace drun::netdetect::testing
