// Clients without the key can't harm a job. A member that misbehaves can lose only its own place.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "base/fd.h"
#include "rendezvous/blocking.h"
#include "rendezvous/connection.h"
#include "server_thread.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

Fd stranger(const ServerThread& server) {
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  auto fd = connect_tcp("127.0.0.1", server.port(), deadline);
  EXPECT_TRUE(fd) << fd.error().message();
  return fd ? std::move(*fd) : Fd();
}

// Returns everything that the server sends until it closes.
std::string read_to_end(int fd) {
  std::string out;
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  for (;;) {
    const auto byte = receive_exactly(fd, 1, deadline);
    if (!byte) {
      EXPECT_EQ(byte.error().code, Errc::kClosed) << byte.error().message();
      return out;
    }
    out += *byte;
  }
}

void send_what_goes(int fd, std::string_view bytes) {
  BlockingDeadline deadline = SteadyClock::now() + 2s;
  (void)send_all(fd, bytes, deadline);
}

// Runs a job of two ranks, which must not notice any other client.
void expect_a_working_job(ServerThread& server) {
  in_ranks(2, [&](int rank) {
    auto client = server.join(rank);
    ASSERT_TRUE(client) << client.error().message();
    const auto met = (*client)->barrier("together", 10s);
    EXPECT_TRUE(met) << met.error().message();
    EXPECT_TRUE((*client)->leave());
  });
}

// A member that uses the protocol directly, without the client.
Result<Connection> rude_member(ServerThread& server, int rank) {
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  auto connection = Connection::open("127.0.0.1", server.port(), server.key(), deadline);
  if (!connection) return connection;
  EXPECT_TRUE(send_all(connection->fd(), connection->seal(JoinMessage{rank, 1}), deadline));
  return connection;
}

// Returns the last error that the server sends on a connection.
std::string last_error(Connection& connection) {
  std::string text;
  for (;;) {
    auto message = connection.receive();
    if (!message) return text;
    if (!message->has_value()) {
      BlockingDeadline deadline = SteadyClock::now() + 10s;
      if (!wait_for(connection.fd(), POLLIN, deadline)) return "still open";
      continue;
    }
    if (const auto* error = std::get_if<ErrorReply>(&**message)) text = error->text;
  }
}

TEST(Strangers, GarbageGetsNoAnswer) {
  ServerThread server(2);
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: a.host.with.a.long.name\r\n\r\n"),
        std::string("\x16\x03\x01") + std::string(200, 'x'), std::string(64, '\0'), std::string(1 << 20, '\xff'),
        std::string("SSH-2.0-OpenSSH_9.2p1 and then some more bytes\r\n")}) {
    const Fd fd = stranger(server);
    send_what_goes(fd.get(), garbage);
    EXPECT_EQ(read_to_end(fd.get()), "");
  }
  expect_a_working_job(server);
}

TEST(Strangers, WithoutTheKeyOneGetsANonceAndNothingElse) {
  ServerThread server(2);
  const Fd fd = stranger(server);
  ClientHandshake handshake(make_job_key(), Purpose::kRendezvous);
  send_what_goes(fd.get(), handshake.hello());
  send_what_goes(fd.get(), std::string(kClientProofBytes, 'p'));
  send_what_goes(fd.get(), std::string(100, 'q'));
  EXPECT_EQ(read_to_end(fd.get()).size(), kServerHelloBytes);
  expect_a_working_job(server);
}

TEST(Strangers, AnotherVersionIsToldOurs) {
  ServerThread server(1);
  const Fd fd = stranger(server);
  ClientHandshake handshake(server.key(), Purpose::kRendezvous);
  std::string hello = handshake.hello();
  hello[5] = 77;
  send_what_goes(fd.get(), hello);
  EXPECT_EQ(read_to_end(fd.get()), std::string("DRUN\0\3", 6) + std::string(58, '\0'));
}

TEST(Strangers, SlowOnesAreCutOffAfterFiveSeconds) {
  ServerThread server(2);
  std::vector<Fd> slow;
  ClientHandshake handshake(server.key(), Purpose::kRendezvous);
  for (int i = 0; i < 20; ++i) slow.push_back(stranger(server));
  const auto start = SteadyClock::now();
  for (std::size_t i = 0; i < slow.size(); ++i) send_what_goes(slow[i].get(), handshake.hello().substr(0, i + 1));
  expect_a_working_job(server);
  EXPECT_LT(SteadyClock::now() - start, 4s);
  for (const Fd& fd : slow) EXPECT_EQ(read_to_end(fd.get()), "");
  EXPECT_GT(SteadyClock::now() - start, 3s);
  EXPECT_LT(SteadyClock::now() - start, 10s);
}

TEST(Strangers, TwoThousandIdleOnesDontKeepAJobFromStarting) {
  if (raise_open_file_limit() < 8192) GTEST_SKIP() << "needs 8192 open files, the hard limit is lower";
  ServerThread server(2);
  std::vector<Fd> idle;
  for (int i = 0; i < 2000; ++i) idle.push_back(stranger(server));
  // The server has accepted all connections and closed all but the latest 1024, and two for the ranks.
  EXPECT_EQ(read_to_end(idle[2000 - 1024 - 2 - 1].get()), "");
  const auto start = SteadyClock::now();
  expect_a_working_job(server);
  EXPECT_LT(SteadyClock::now() - start, 3s);
  // The oldest one is closed, too.
  EXPECT_EQ(read_to_end(idle[0].get()), "");
}

TEST(Strangers, RanksOfALargeJobMayAllBeAboutToJoinAtOnce) {
  if (raise_open_file_limit() < 8192) GTEST_SKIP() << "needs 8192 open files, the hard limit is lower";
  constexpr int kRanks = 1500;
  ServerThread server(kRanks);
  std::vector<Fd> ranks;
  for (int i = 0; i < kRanks; ++i) ranks.push_back(stranger(server));
  for (const std::size_t rank : {0, kRanks - 1}) {
    send_what_goes(ranks[rank].get(), ClientHandshake(server.key(), Purpose::kRendezvous).hello());
    BlockingDeadline deadline = SteadyClock::now() + 10s;
    const auto answer = receive_exactly(ranks[rank].get(), kServerHelloBytes, deadline);
    EXPECT_TRUE(answer) << rank << ": " << answer.error().message();
  }
}

TEST(Members, OneThatDoesNotReadIsDroppedAndTheOthersGoOn) {
  ServerThread server(2);
  auto good = server.join(1);
  ASSERT_TRUE(good);
  ASSERT_TRUE((*good)->set("big", std::string(kMaxValue, 'v')));
  auto deaf = rude_member(server, 0);
  ASSERT_TRUE(deaf);
  for (std::uint32_t request = 1; request <= 40; ++request) {
    send_what_goes(deaf->fd(), deaf->seal(GetMessage{request, "big", 0}));
  }
  EXPECT_TRUE(server.told("lost 0"));
  const auto value = (*good)->get("big", 5s);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), kMaxValue);
}

TEST(Members, OneThatDoesNotReadKeepsNobodyWaiting) {
  ServerThread server(2);
  auto good = server.join(1);
  ASSERT_TRUE(good);
  ASSERT_TRUE((*good)->set("big", std::string(kMaxValue, 'v')));
  auto deaf = rude_member(server, 0);
  ASSERT_TRUE(deaf);
  for (std::uint32_t request = 1; request <= 3; ++request) {
    send_what_goes(deaf->fd(), deaf->seal(GetMessage{request, "big", 0}));
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE((*good)->set("k" + std::to_string(i), "v"));
  EXPECT_EQ(server.count("lost 0"), 0);
}

TEST(Members, OneThatJoinsTwiceOnOneConnectionIsToldSo) {
  ServerThread server(2);
  auto twice = rude_member(server, 0);
  ASSERT_TRUE(twice);
  send_what_goes(twice->fd(), twice->seal(JoinMessage{1, 1}));
  EXPECT_EQ(last_error(*twice), "this connection has already joined");
  EXPECT_TRUE(server.told("lost 0"));
  expect_a_working_job(server);
}

TEST(Members, OneThatSpeaksBeforeItHasJoinedIsToldSo) {
  ServerThread server(1);
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  auto early = Connection::open("127.0.0.1", server.port(), server.key(), deadline);
  ASSERT_TRUE(early);
  send_what_goes(early->fd(), early->seal(GetMessage{1, "k", 0}));
  EXPECT_EQ(last_error(*early), "the first message must be JOIN");
}

TEST(Members, TamperedOrOversizedFrameEndsTheConnection) {
  ServerThread server(2);
  auto tampered = rude_member(server, 0);
  ASSERT_TRUE(tampered);
  ASSERT_TRUE(server.told("joined 0"));
  std::string frame = tampered->seal(GetMessage{1, "k", 0});
  frame.back() = static_cast<char>(frame.back() ^ 1);
  send_what_goes(tampered->fd(), frame);
  EXPECT_EQ(last_error(*tampered), "a frame was not sealed with this job's key at this position");
  EXPECT_TRUE(server.told("lost 0"));
  auto oversized = rude_member(server, 0);
  ASSERT_TRUE(oversized);
  ASSERT_TRUE(server.told("joined 0", 2));
  send_what_goes(oversized->fd(), std::string("\x7f\xff\xff\xff", 4));
  EXPECT_EQ(last_error(*oversized), "a frame of 2147483647 bytes is out of bounds");
  EXPECT_TRUE(server.told("lost 0", 2));
  expect_a_working_job(server);
}

TEST(Members, TooManyWaitsAreRefusedOneByOne) {
  ServerThread server(1);
  auto greedy = rude_member(server, 0);
  ASSERT_TRUE(greedy);
  for (std::uint32_t request = 1; request <= 65; ++request) {
    send_what_goes(greedy->fd(), greedy->seal(GetMessage{request, "k", 10000}));
  }
  send_what_goes(greedy->fd(), greedy->seal(LeaveMessage{66}));
  EXPECT_EQ(last_error(*greedy), "too many waits at once: 64");
}

}  // namespace
}  // namespace drun::rendezvous
