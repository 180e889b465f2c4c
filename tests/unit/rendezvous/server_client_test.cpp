// A real server and real clients over loopback.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "server_thread.h"
#include "tests/hostile_text.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// Waits until the server pushes an abort to `client`; sends no request.
std::optional<AbortNotice> wait_for_abort(Client& client) {
  const auto deadline = SteadyClock::now() + 10s;
  while (SteadyClock::now() < deadline) {
    if (auto notice = client.aborted()) return notice;
    pollfd p{client.fd(), POLLIN, 0};
    ::poll(&p, 1, 1000);
  }
  return std::nullopt;
}

TEST(Rendezvous, WelcomesWithThePlaceInTheJob) {
  ServerThread server(4);
  auto client = server.join(3);
  ASSERT_TRUE(client) << client.error().message();
  const Welcome& w = (*client)->welcome();
  EXPECT_EQ(w.job_id, "job-7");
  EXPECT_EQ(w.rank, 3);
  EXPECT_EQ(w.size, 4);
  EXPECT_EQ(w.local_rank, 1);
  EXPECT_EQ(w.local_size, 2);
  EXPECT_EQ(w.cross_rank, 1);
  EXPECT_EQ(w.cross_size, 2);
  EXPECT_EQ(w.host_names, (std::vector<std::string>{"node0", "node1"}));
  EXPECT_EQ(w.host_index_of_rank, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(w.host_of(2), "node1");
  EXPECT_EQ(w.host_of(4), "");
  EXPECT_TRUE(server.told("joined 3"));
}

TEST(Rendezvous, WorksOverIpv6) {
  ServerThread server(1, "::1");
  if (server.port() <= 0) GTEST_SKIP() << "this machine has no IPv6 loopback";
  auto client = server.join(0);
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE((*client)->set("a", "b"));
}

TEST(Rendezvous, SixtyFourClientsJoinMeetAndExchange) {
  constexpr int kRanks = 64;
  ServerThread server(kRanks);
  std::atomic<int> good{0};
  in_ranks(kRanks, [&](int rank) {
    auto client = server.join(rank);
    ASSERT_TRUE(client) << client.error().message();
    Client& c = **client;
    const std::string mine = "addr/" + std::to_string(rank), next = "addr/" + std::to_string((rank + 1) % kRanks);
    ASSERT_TRUE(c.set(mine, "value of " + std::to_string(rank)));
    const auto value = c.get(next, 20s);
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(*value, "value of " + std::to_string((rank + 1) % kRanks));
    for (int round = 0; round < 5; ++round) {
      const auto met = c.barrier("round", 20s);
      ASSERT_TRUE(met) << met.error().message();
    }
    ASSERT_TRUE(c.leave());
    ++good;
  });
  EXPECT_EQ(good, kRanks);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(server.told("left " + std::to_string(rank)));
  std::vector<int> joined{-1};
  server.on_loop([&] { joined = server.server().joined(); });
  EXPECT_TRUE(joined.empty());
}

TEST(Rendezvous, BarrierHoldsEverybodyUntilTheLast) {
  ServerThread server(3);
  std::atomic<int> entered{0};
  in_ranks(3, [&](int rank) {
    auto client = server.join(rank);
    ASSERT_TRUE(client);
    for (int round = 1; round <= 50; ++round) {
      ++entered;
      ASSERT_TRUE((*client)->barrier("b", 20s));
      EXPECT_GE(entered.load(), 3 * round);
      ASSERT_TRUE((*client)->barrier("c", 20s));
    }
  });
}

TEST(Rendezvous, GetIsWokenBySet) {
  ServerThread server(2);
  auto setter = server.join(1);
  ASSERT_TRUE(setter);
  std::thread waiter([&] {
    auto getter = server.join(0);
    ASSERT_TRUE(getter);
    ASSERT_TRUE((*getter)->set("ready", ""));
    const auto value = (*getter)->get("late", 20s);
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(*value, "now");
  });
  ASSERT_TRUE((*setter)->get("ready", 20s));
  ASSERT_TRUE((*setter)->set("late", "now"));
  waiter.join();
}

TEST(Rendezvous, CarriesTheLargestValueAndRefusesMore) {
  ServerThread server(1);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  std::string big(kMaxValue, 'x');
  big[1234567] = 'y';
  ASSERT_TRUE((*client)->set(std::string(kMaxKey, 'k'), big));
  const auto back = (*client)->get(std::string(kMaxKey, 'k'), 5s);
  ASSERT_TRUE(back);
  EXPECT_TRUE(*back == big);
  EXPECT_EQ((*client)->set("k", big + "x").error().code, Errc::kProtocol);
  EXPECT_EQ((*client)->set(std::string(kMaxKey + 1, 'k'), "v").error().code, Errc::kProtocol);
  EXPECT_EQ((*client)->set("", "v").error().code, Errc::kProtocol);
  EXPECT_TRUE((*client)->set("k", "still of use"));
}

// The limit of what waits to be sent to a client is no limit of all that it is sent.
TEST(Rendezvous, AClientMayGetAnyNumberOfLargeValues) {
  ServerThread server(1);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->set("k", std::string(kMaxValue, 'x')));
  for (int i = 0; i < 6; ++i) {
    const auto value = (*client)->get("k", 20s);
    ASSERT_TRUE(value) << i << ": " << value.error().message();
    EXPECT_EQ(value->size(), kMaxValue);
  }
}

TEST(Rendezvous, KeysAreWriteOnceUnlessOverwritten) {
  ServerThread server(1);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->set("k", "one"));
  EXPECT_TRUE((*client)->set("k", "one"));
  const auto again = (*client)->set("k", "two");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kProtocol);
  EXPECT_NE(again.error().message().find("'k'"), std::string::npos);
  EXPECT_TRUE((*client)->set("k", "two", true));
  EXPECT_EQ((*client)->get("k", 1s).value_or(""), "two");
}

TEST(Rendezvous, KeysCanBeDeleted) {
  ServerThread server(1);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->erase("k").value_or(true), false);
  ASSERT_TRUE((*client)->set("k", "one"));
  EXPECT_EQ((*client)->erase("k").value_or(false), true);
  EXPECT_FALSE((*client)->get("k", 0ms));
  EXPECT_TRUE((*client)->set("k", "two"));
  EXPECT_EQ((*client)->erase("").error().code, Errc::kProtocol);
}

TEST(Rendezvous, ExpiredGetNamesTheKeyAndWhoIsNotThere) {
  ServerThread server(2);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  const auto start = SteadyClock::now();
  const auto value = (*client)->get("never", 50ms);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Errc::kTimeout);
  EXPECT_EQ(value.error().message(),
            "key 'never' was not set within 50 ms; not there: rank 1 on node0 (has not joined)");
  EXPECT_GE(SteadyClock::now() - start, 50ms);
  EXPECT_LT(SteadyClock::now() - start, 2s);
  EXPECT_FALSE((*client)->get("never", 0ms));
}

TEST(Rendezvous, ExpiredBarrierNamesTheMissingRanks) {
  ServerThread server(4);
  auto c0 = server.join(0);
  auto c2 = server.join(2);
  auto c3 = server.join(3);
  ASSERT_TRUE(c0 && c2 && c3);
  ASSERT_TRUE((*c2)->leave());
  const auto met = (*c0)->barrier("start", 50ms);
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, Errc::kTimeout);
  EXPECT_EQ(met.error().message(),
            "barrier 'start' was not complete within 50 ms; missing: rank 1 on node0 (has not joined), rank 2 on node1 "
            "(left), rank 3 on node1");
}

TEST(Rendezvous, RankThatJoinsTwiceIsRefusedAndTheFirstStays) {
  ServerThread server(2);
  auto first = server.join(1);
  ASSERT_TRUE(first);
  const auto second = server.join(1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kProtocol);
  EXPECT_EQ(second.error().cause, "rank 1 has already joined: pid " + std::to_string(::getpid()) + " on node0");
  EXPECT_TRUE((*first)->set("a", "b"));
}

TEST(Rendezvous, RankThatDoesNotExistIsRefused) {
  ServerThread server(2);
  for (const int rank : {-1, 2, 1 << 30}) {
    const auto client = server.join(rank);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().cause, "rank " + std::to_string(rank) + " does not exist: the job has ranks 0 to 1");
  }
}

TEST(Rendezvous, RankMayComeAgainAfterItLeft) {
  ServerThread server(1);
  {
    auto client = server.join(0);
    ASSERT_TRUE(client);
    ASSERT_TRUE((*client)->leave());
    EXPECT_EQ((*client)->set("a", "b").error().code, Errc::kClosed);
    EXPECT_FALSE((*client)->aborted());
  }
  auto again = server.join(0);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->welcome().epoch, 2);
}

// A program is killed and the next one takes its place; the end of the first one may be noticed after the next one has
// joined.
TEST(Rendezvous, RankThatFollowsAnotherWaitsForItsSeat) {
  ServerThread server(1);
  auto first = server.join(0);
  ASSERT_TRUE(first);
  auto second = std::async(std::launch::async, [&] { return server.join(0); });
  EXPECT_EQ(second.wait_for(100ms), std::future_status::timeout);
  ::shutdown((*first)->fd(), SHUT_RDWR);
  auto joined = second.get();
  ASSERT_TRUE(joined);
  EXPECT_EQ((*joined)->welcome().epoch, 2);
  EXPECT_TRUE((*joined)->set("a", "b"));
  EXPECT_TRUE(server.told("lost 0"));
  EXPECT_TRUE(server.told("joined 0", 2));
}

// A busy server closes connections that have not joined yet.
TEST(Rendezvous, JoinIsTriedAgainWhenTheServerClosesTheConnection) {
  ServerThread server(1, "");
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), any, length), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), any, &length), 0);
  const timeval limit{10, 0};  // of accept(), too
  ASSERT_EQ(::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  auto joining = std::async(std::launch::async,
                            [&] { return Client::join("127.0.0.1", ntohs(address.sin_port), server.key(), 0, 20s); });
  for (int i = 0; i < 2; ++i) {  // without a word, and after some
    const Fd refused(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte = 0;
    const bool reads = i == 1;
    EXPECT_TRUE(!reads || ::recv(refused.get(), &byte, 1, 0) == 1);
  }
  const int taken = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(taken, 0) << "it was not tried again";
  server.on_loop([&] {
    asio::generic::stream_protocol::socket socket(server.io(), {AF_INET, IPPROTO_TCP}, taken);
    server.server().adopt(std::move(socket));
  });
  auto client = joining.get();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE((*client)->set("a", "b"));
}

TEST(Rendezvous, RankThatIsLeftBehindIsToldAtOnce) {
  ServerThread server(2);
  auto c0 = server.join(0);
  auto c1 = server.join(1);
  ASSERT_TRUE(c0 && c1);
  auto met = std::async(std::launch::async, [&] { return (*c1)->barrier("b", 60s); });
  ::shutdown((*c0)->fd(), SHUT_RDWR);
  auto again = server.join(0);
  ASSERT_TRUE(again);
  const auto left_behind = met.get();
  ASSERT_FALSE(left_behind);
  EXPECT_EQ(left_behind.error().code, Errc::kPeerFailed);
  EXPECT_NE(left_behind.error().cause.find("left behind in epoch 1: rank 0 on node0 has begun epoch 2"),
            std::string::npos)
      << left_behind.error().cause;
  // The next program of rank 1 meets the one of rank 0.
  auto other = std::async(std::launch::async, [&] { return (*again)->barrier("b", 60s); });
  (*c1).reset();
  c1 = server.join(1);
  ASSERT_TRUE(c1);
  EXPECT_EQ((*c1)->welcome().epoch, 2);
  EXPECT_TRUE((*c1)->barrier("b", 60s));
  EXPECT_TRUE(other.get());
}

TEST(Rendezvous, TellsOrderlyAndDisorderlyEndsApart) {
  ServerThread server(3);
  auto c0 = server.join(0);
  auto c1 = server.join(1);
  auto c2 = server.join(2);
  ASSERT_TRUE(c0 && c1 && c2);
  ASSERT_TRUE((*c0)->leave());
  (*c1).reset();                       // sends a goodbye, too
  ::shutdown((*c2)->fd(), SHUT_RDWR);  // like the end of a killed process
  EXPECT_TRUE(server.told("left 0"));
  EXPECT_TRUE(server.told("left 1"));
  EXPECT_TRUE(server.told("lost 2"));
}

TEST(Rendezvous, WrongKeyIsToldToTheClientAndJoinsNobody) {
  ServerThread server(1);
  const auto client = Client::join("127.0.0.1", server.port(), make_job_key(), 0, 5s);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, Errc::kAuth);
  EXPECT_EQ(server.count("joined 0"), 0);
}

TEST(Rendezvous, JoinSaysWhatIsWrongWithTheAddress) {
  const JobKey key = make_job_key();
  EXPECT_NE(Client::join("no-ip", 1, key, 0, 1s).error().message().find("not an IP address"), std::string::npos);
  EXPECT_FALSE(Client::join("127.0.0.1", 0, key, 0, 1s));
  int port = 0;
  {
    ServerThread gone(1);
    port = gone.port();
  }
  const auto refused = Client::join("127.0.0.1", port, key, 0, 1s);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("connection refused"), std::string::npos) << refused.error().message();
}

TEST(Rendezvous, AbortWakesEveryWaitWithinAHundredMilliseconds) {
  constexpr int kRanks = 8;
  ServerThread server(kRanks + 1);
  // The latch is not a key of the rendezvous, because the abort may overtake the answer to the rank that sets the key.
  std::latch all_wait(kRanks);
  std::atomic<SteadyClock::rep> sent{0};
  std::vector<SteadyClock::duration> late(kRanks);
  std::thread aborter;
  auto attribution_client = server.join(kRanks);
  ASSERT_TRUE(attribution_client);
  aborter = std::thread([&] {
    all_wait.wait();
    sent = SteadyClock::now().time_since_epoch().count();
    ASSERT_TRUE((*attribution_client)->abort("out of memory"));
  });
  in_ranks(kRanks, [&](int rank) {
    auto client = server.join(rank);
    all_wait.count_down();  // even if joining failed, because the aborter waits without a deadline
    ASSERT_TRUE(client);
    const auto outcome =
        rank % 2 == 0 ? (*client)->barrier("b", 20s) : (*client)->get("k", 20s).map([](const std::string&) {});
    late[static_cast<std::size_t>(rank)] =
        SteadyClock::now() - SteadyClock::time_point(SteadyClock::duration(sent.load()));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::kPeerFailed);
    EXPECT_EQ(outcome.error().message(), "rank 8 on node4 (pid " + std::to_string(::getpid()) + "): out of memory");
    EXPECT_EQ((*client)->set("a", "b").error().code, Errc::kPeerFailed);
    const auto notice = (*client)->aborted();
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->rank, 8);
  });
  aborter.join();
  EXPECT_TRUE(server.told("abort by 8: out of memory"));
  // A rank may wait longer than that for a core. A rank that was not woken would notice after 20 s.
  std::sort(late.begin(), late.end());
  EXPECT_LT(late[kRanks / 2], 100ms);
  EXPECT_LT(late.back(), 10s);
}

TEST(Rendezvous, TextsOfWorkersAreCleanLines) {
  ServerThread server(2);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  (*client)->complain(testing::kHostile);
  ASSERT_TRUE((*client)->abort(testing::kHostile));
  EXPECT_TRUE(server.told("abort by 0: " + testing::kHostileInOneLine));
}

TEST(Rendezvous, AbortOfTheLauncherReachesAClientThatOnlyPolls) {
  ServerThread server(2);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  EXPECT_FALSE((*client)->aborted());
  server.on_loop([&] {
    server.server().abort(Abort{1, "node0", 812, "killed by signal 9"});
    server.server().abort(Abort{0, "node0", 1, "a later reason"});
  });
  const auto notice = wait_for_abort(**client);
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->rank, 1);
  EXPECT_EQ(notice->pid, 812);
  EXPECT_EQ((*client)->barrier("b", 5s).error().message(), "rank 1 on node0 (pid 812): killed by signal 9");
  const auto late = server.join(1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kPeerFailed);
  EXPECT_EQ(late.error().message(), "rank 1 on node0 (pid 812): killed by signal 9");
  EXPECT_TRUE((*client)->leave());
}

TEST(Rendezvous, AbortArrivesEvenIfTheServerStopsAtOnce) {
  std::unique_ptr<Client> client;
  {
    ServerThread server(1);
    client = std::move(*server.join(0));
    server.on_loop([&] {
      server.server().abort(Abort{-1, "node3", 0, "the host is gone"});
      server.server().stop();
    });
  }
  EXPECT_EQ(client->get("k", 5s).error().message(), "drun on node3: the host is gone");
}

TEST(Rendezvous, ServerThatGoesAwayWakesAWaitingClient) {
  auto server = std::make_unique<ServerThread>(2);
  auto client = server->join(0);
  ASSERT_TRUE(client);
  std::thread waiter([&] {
    const auto met = (*client)->barrier("b", 20s);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, Errc::kPeerFailed);
    EXPECT_EQ(met.error().message(), "the launcher is gone");
    const auto notice = (*client)->aborted();
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->rank, -1);
    EXPECT_EQ(notice->why, "the launcher is gone");
  });
  ASSERT_TRUE(server->told("joined 0"));
  server.reset();
  waiter.join();
  EXPECT_EQ((*client)->set("a", "b").error().code, Errc::kPeerFailed);
}

TEST(Rendezvous, NcclIdIsTheSameEverywhereAndNewForEachAttempt) {
  constexpr int kRanks = 8;
  ServerThread server(kRanks);
  std::mutex mutex;
  std::map<std::pair<std::string, int>, std::set<std::string>> seen;
  std::atomic<int> made{0};
  in_ranks(kRanks, [&](int rank) {
    auto client = server.join(rank);
    ASSERT_TRUE(client);
    ASSERT_TRUE((*client)->barrier("init", 20s));  // as in drun_init: no rank leaves before all are there
    for (const std::string communicator : {"world", "local"}) {
      for (int attempt = 0; attempt < 3; ++attempt) {
        const int root = attempt;
        const auto id = (*client)->nccl_id(
            communicator, attempt, root,
            [&]() -> Result<std::string> {
              EXPECT_EQ(rank, root);
              std::string out(kNcclIdBytes, '\0');
              out[5] = static_cast<char>(++made);
              return out;
            },
            20s);
        ASSERT_TRUE(id) << id.error().message();
        const std::lock_guard<std::mutex> lock(mutex);
        seen[{communicator, attempt}].insert(*id);
      }
    }
  });
  EXPECT_EQ(made, 6);
  std::set<std::string> all;
  for (const auto& [key, ids] : seen) {
    EXPECT_EQ(ids.size(), 1u);
    all.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(all.size(), 6u);
}

TEST(Rendezvous, NcclIdThatCannotBeMadeEndsEverybodysWait) {
  ServerThread server(2);
  in_ranks(2, [&](int rank) {
    auto client = server.join(rank);
    ASSERT_TRUE(client);
    ASSERT_TRUE((*client)->barrier("init", 20s));  // as in drun_init: no rank leaves before all are there
    const auto id = (*client)->nccl_id(
        "world", 0, 0, []() -> Result<std::string> { return fail(Errc::kNotFound, "libnccl.so.2", "not found"); }, 20s);
    ASSERT_FALSE(id);
    if (rank == 0) {
      EXPECT_EQ(id.error().code, Errc::kNotFound);
    } else {
      EXPECT_EQ(id.error().code, Errc::kPeerFailed);
      EXPECT_EQ(id.error().message(), "rank 0 on node0 has no NCCL id: libnccl.so.2: not found");
    }
  });
}

TEST(Rendezvous, WaitsEndWhenTheyAreCanceled) {
  ServerThread server(2);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  const Fd cancel(::eventfd(1, EFD_CLOEXEC));  // can be read from the start
  const auto begin = std::chrono::steady_clock::now();
  const auto value = (*client)->get("absent", 60s, cancel.get());
  const auto id = (*client)->nccl_id("world", 0, 1, nullptr, 60s, cancel.get());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Errc::kCanceled);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, Errc::kCanceled);
  EXPECT_TRUE((*client)->set("key", "value")) << "the connection is still of use";
}

TEST(Rendezvous, ExpiredNcclIdNamesTheRoot) {
  ServerThread server(4);
  auto client = server.join(0);
  ASSERT_TRUE(client);
  const auto id = (*client)->nccl_id("world", 2, 3, nullptr, 30ms);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, Errc::kTimeout);
  EXPECT_EQ(id.error().message(),
            "the NCCL id of communicator 'world', attempt 2, did not come within 30 ms from rank 3 on node1 "
            "(has not joined)");
}

}  // namespace
}  // namespace drun::rendezvous
