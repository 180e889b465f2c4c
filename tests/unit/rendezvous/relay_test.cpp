// A real server and real clients with RelayListener and RelaySink between them, on one loop and without a network
// between the two: function calls replace the control channel.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/blocking.h"
#include "rendezvous/relay.h"
#include "server_thread.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// Delivers calls as the control channel does: in order, later, never from within the caller.
class Relayed {
 public:
  explicit Relayed(int n_ranks) : server(n_ranks, "") {
    server.on_loop([this] {
      const auto executor = server.io().get_executor();
      const auto later = [executor](auto f) { asio::post(executor, std::move(f)); };
      RelayOutput up;
      up.open = [this, later](std::uint32_t n) { later([this, n] { sink->open(n); }); };
      up.data = [this, later](std::uint32_t n, std::string bytes) {
        EXPECT_LE(bytes.size(), 64u << 10);
        later([this, n, b = std::move(bytes)]() mutable { sink->deliver(n, std::move(b)); });
      };
      up.close = [this, later](std::uint32_t n) {
        ++closed_by_worker;
        later([this, n] { sink->close(n); });
      };
      RelayOutput down;
      down.data = [this, later](std::uint32_t n, std::string bytes) {
        EXPECT_LE(bytes.size(), 64u << 10);
        later([this, n, b = std::move(bytes)]() mutable { listener->deliver(n, std::move(b)); });
      };
      down.close = [this, later](std::uint32_t n) {
        ++closed_by_server;
        later([this, n] { listener->close(n); });
      };
      sink = RelaySink::create(
          executor, [this](std::uint32_t, auto socket) { server.server().adopt(std::move(socket)); }, std::move(down));
      auto started = RelayListener::start(executor, std::move(up));
      ASSERT_TRUE(started) << started.error().message();
      listener = std::move(*started);
      address = listener->address();
      port = listener->port();
    });
  }
  ~Relayed() {
    std::promise<void> over;
    server.on_loop([&] {
      listener->stop();
      sink->stop();
      asio::co_spawn(server.io(), finish(*listener, *sink), [&](std::exception_ptr) { over.set_value(); });
    });
    over.get_future().get();
    // Everything posted before has run after one more round of the loop.
    server.on_loop([] {});
    server.on_loop([this] {
      listener.reset();
      sink.reset();
    });
  }
  Result<std::unique_ptr<Client>> join(int rank) { return Client::join(address, port, server.key(), rank, 20s); }

  ServerThread server;
  std::unique_ptr<RelaySink> sink;
  std::unique_ptr<RelayListener> listener;
  std::string address;
  int port = 0;
  std::atomic<int> closed_by_worker{0}, closed_by_server{0};

 private:
  static Task<void> finish(RelayListener& listener, RelaySink& sink) {
    co_await listener.join();
    co_await sink.join();
  }
};

TEST(Relay, ListensOnLoopbackOnly) {
  Relayed relayed(1);
  EXPECT_EQ(relayed.address, "127.0.0.1");
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  EXPECT_TRUE(connect_tcp("127.0.0.1", relayed.port, deadline));
  // A socket on 0.0.0.0 would answer on every address of this machine, including the rest of 127/8.
  const auto other = connect_tcp("127.0.0.2", relayed.port, deadline);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("refused"), std::string::npos) << other.error().message();
}

TEST(Relay, CarriesSixtyFourClients) {
  constexpr int kRanks = 64;
  Relayed relayed(kRanks);
  std::atomic<int> good{0};
  in_ranks(kRanks, [&](int rank) {
    auto client = relayed.join(rank);
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE((*client)->set("addr/" + std::to_string(rank), std::to_string(rank)));
    ASSERT_TRUE((*client)->barrier("b", 20s));
    EXPECT_EQ((*client)->get("addr/" + std::to_string((rank + 1) % kRanks), 20s).value_or(""),
              std::to_string((rank + 1) % kRanks));
    ASSERT_TRUE((*client)->leave());
    ++good;
  });
  EXPECT_EQ(good, kRanks);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(relayed.server.told("left " + std::to_string(rank)));
}

TEST(Relay, CarriesBigValuesBothWays) {
  constexpr int kRanks = 8;
  Relayed relayed(kRanks);
  in_ranks(kRanks, [&](int rank) {
    auto client = relayed.join(rank);
    ASSERT_TRUE(client) << client.error().message();
    const std::size_t n_bytes = rank == 0 ? kMaxValue : (1u << 20) + static_cast<std::size_t>(rank);
    std::string value(n_bytes, static_cast<char>('a' + rank));
    value[n_bytes / 2] = '!';
    ASSERT_TRUE((*client)->set("big/" + std::to_string(rank), value));
    for (int other = 0; other < kRanks; ++other) {
      const auto got = (*client)->get("big/" + std::to_string(other), 20s);
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ((*got)[0], 'a' + other);
      EXPECT_EQ((*got)[got->size() / 2], '!');
    }
  });
}

TEST(Relay, RefusalsReachTheWorkerBeforeTheEnd) {
  Relayed relayed(2);
  auto first = relayed.join(0);
  ASSERT_TRUE(first);
  const auto second = relayed.join(0);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("already joined"), std::string::npos) << second.error().message();
  EXPECT_TRUE((*first)->set("a", "b"));
}

TEST(Relay, AbruptEndOfAWorkerReachesTheServer) {
  Relayed relayed(2);
  auto lost = relayed.join(0);
  auto stays = relayed.join(1);
  ASSERT_TRUE(lost && stays);
  ::shutdown((*lost)->fd(), SHUT_RDWR);
  EXPECT_TRUE(relayed.server.told("lost 0"));
  EXPECT_TRUE((*stays)->set("a", "b"));
}

TEST(Relay, EndOfTheServerReachesTheWorkers) {
  Relayed relayed(2);
  auto client = relayed.join(0);
  ASSERT_TRUE(client);
  std::thread waiter([&] {
    const auto met = (*client)->barrier("b", 20s);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().message(), "the launcher is gone");
  });
  relayed.server.on_loop([&] { relayed.server.server().stop(); });
  waiter.join();
}

TEST(Relay, AbortWakesARelayedClient) {
  Relayed relayed(2);
  auto client = relayed.join(0);
  ASSERT_TRUE(client);
  std::thread waiter([&] { EXPECT_EQ((*client)->get("k", 20s).error().message(), "rank 1 on node0 (pid 7): gone"); });
  relayed.server.on_loop([&] { relayed.server.server().abort(Abort{1, "node0", 7, "gone"}); });
  waiter.join();
}

TEST(Relay, StrangersOnLoopbackAreClosedByTheServer) {
  Relayed relayed(1);
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  auto fd = connect_tcp(relayed.address, relayed.port, deadline);
  ASSERT_TRUE(fd);
  ASSERT_TRUE(send_all(fd->get(), std::string(1000, 'x'), deadline));
  EXPECT_EQ(receive_exactly(fd->get(), 1, deadline).error().code, Errc::kClosed);
  auto client = relayed.join(0);
  EXPECT_TRUE(client);
}

TEST(Relay, WorkerThatDoesNotReadIsClosedAtTheBound) {
  Relayed relayed(1);
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  auto fd = connect_tcp(relayed.address, relayed.port, deadline);
  ASSERT_TRUE(fd);
  relayed.server.on_loop([&] {});
  // Far more than the queue and the kernel's buffers; the first connection has number 1.
  const auto give_up = SteadyClock::now() + 20s;
  while (relayed.closed_by_worker == 0 && SteadyClock::now() < give_up) {
    relayed.server.on_loop([&] { relayed.listener->deliver(1, std::string(1 << 20, 'x')); });
  }
  EXPECT_EQ(relayed.closed_by_worker, 1);
}

TEST(Relay, UnknownConnectionsAreIgnored) {
  Relayed relayed(1);
  relayed.server.on_loop([&] {
    relayed.listener->deliver(99, "x");
    relayed.listener->close(99);
    relayed.sink->deliver(99, "x");
    relayed.sink->close(99);
  });
  auto client = relayed.join(0);
  ASSERT_TRUE(client);
  EXPECT_TRUE((*client)->leave());
}

}  // namespace
}  // namespace drun::rendezvous
