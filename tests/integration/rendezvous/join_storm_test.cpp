// The server under the largest load that a job makes: all ranks at once, over a slow path, and strangers beside them.
// Server, relays and strangers are processes of their own, because each needs thousands of descriptors.
#include <gtest/gtest.h>

#include "base/accept.h"
#include "tests/integration/rendezvous/simulated_job.h"

namespace drun::rendezvous::simulated {
namespace {

// The delaying relay

struct Relayed {
  explicit Relayed(Tcp::socket from) : client(std::move(from)), server(client.get_executor()) {}
  void close() {
    boost::system::error_code ignored;
    client.close(ignored);
    server.close(ignored);
  }
  Tcp::socket client, server;
};
using RelayedPtr = std::shared_ptr<Relayed>;

Task<void> pump(RelayedPtr pair, bool to_server, Clock::duration delay) {
  Tcp::socket& from = to_server ? pair->client : pair->server;
  Tcp::socket& to = to_server ? pair->server : pair->client;
  for (;;) {
    // Idle connections need no buffer.
    const auto [wait_ec] = co_await from.async_wait(Tcp::socket::wait_read, as_result);
    if (wait_ec) break;
    std::string bytes(64u << 10, '\0');
    boost::system::error_code ec;
    const std::size_t n = from.read_some(asio::buffer(bytes), ec);
    if (ec) break;
    bytes.resize(n);
    bytes.shrink_to_fit();
    co_await sleep_until(Clock::now() + delay);
    const auto buffer = asio::buffer(bytes);
    const auto [write_ec, n_written] = co_await asio::async_write(to, buffer, as_result);
    if (write_ec) break;
  }
  pair->close();
}

Task<void> relay(RelayedPtr pair, int server_port, Clock::duration delay, TaskGroup& tasks) {
  const auto server = at(server_port);
  const auto [ec] = co_await pair->server.async_connect(server, as_result);
  if (ec) {
    pair->close();
    co_return;
  }
  for (const int socket : {pair->client.native_handle(), pair->server.native_handle()}) tune_tcp(socket);
  tasks.spawn(pump(pair, true, delay));
  co_await pump(pair, false, delay);
}

Task<void> relay_until_end(int server_port, Clock::duration delay, int out, int end) {
  const auto executor = co_await asio::this_coro::executor;
  auto acceptor = listen_on(executor, "127.0.0.1");
  if (!acceptor) co_return;
  write_number(out, acceptor->local_endpoint().port());
  TaskGroup tasks(executor);
  std::function<void(Tcp::socket)> take = [&tasks, server_port, delay](Tcp::socket socket) {
    tasks.spawn(relay(std::make_shared<Relayed>(std::move(socket)), server_port, delay, tasks));
  };
  tasks.spawn(accept_all(*acceptor, std::move(take)));
  co_await wait_for_end(end);
  ::_exit(0);
}

std::function<void(int, int)> relay_process(int server_port, Clock::duration delay) {
  return [server_port, delay](int out, int end) {
    asio::io_context io(1);
    run_on_loop(io, relay_until_end(server_port, delay, out, end));
  };
}

// Connects and says nothing until the server closes.
Task<void> be_a_stranger(int server_port, int& n_connected) {
  Tcp::socket socket(co_await asio::this_coro::executor);
  const auto server = at(server_port);
  const auto [ec] = co_await socket.async_connect(server, as_result);
  if (!ec) ++n_connected;
  std::array<char, 1> byte;
  const auto buffer = asio::buffer(byte);
  co_await socket.async_read_some(buffer, as_result);
}

Task<void> be_strangers(int server_port, int n_strangers, int out, int end) {
  const auto executor = co_await asio::this_coro::executor;
  TaskGroup tasks(executor);
  int n_connected = 0;
  for (int i = 0; i < n_strangers; ++i) tasks.spawn(be_a_stranger(server_port, n_connected));
  const auto are_connected = [&] { return n_connected >= n_strangers; };
  while (!are_connected()) co_await sleep_until(Clock::now() + 10ms);
  write_number(out, n_connected);
  co_await wait_for_end(end);
  ::_exit(0);
}

std::function<void(int, int)> strangers_process(int server_port, int n_strangers) {
  return [server_port, n_strangers](int out, int end) {
    asio::io_context io(1);
    run_on_loop(io, be_strangers(server_port, n_strangers, out, end));
  };
}

// The ranks

struct Outcome {
  int n_joined = 0, n_met = 0, n_retries = 0;
};

Task<void> join_and_meet(const JobKey& key, int rank, int port, Outcome& outcome,
                         std::vector<std::unique_ptr<Rank>>& keep) {
  const auto executor = co_await asio::this_coro::executor;
  keep.push_back(std::make_unique<Rank>(executor, key, rank, port));
  Rank& connection = *keep.back();
  const bool joined = co_await connection.join(Clock::now() + 50s, outcome.n_retries);
  if (!joined) co_return;
  ++outcome.n_joined;
  BarrierMessage barrier;
  barrier.request = 1;
  barrier.name = "init";
  barrier.timeout_ms = kLongTimeoutMs;
  const bool sent = co_await connection.send(barrier);
  if (!sent) co_return;
  const auto reply = co_await connection.receive();
  if (reply && std::holds_alternative<DoneReply>(*reply)) ++outcome.n_met;
}

Task<void> all_join_and_meet(const JobKey& key, int n_ranks, const std::vector<int>& ports, Outcome& outcome) {
  TaskGroup tasks(co_await asio::this_coro::executor);
  std::vector<std::unique_ptr<Rank>> keep;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const int port = ports[static_cast<std::size_t>(rank) % ports.size()];
    tasks.spawn(join_and_meet(key, rank, port, outcome, keep));
  }
  co_await tasks.join();
}

TEST(JoinStorm, EightThousandRanksJoinAtOnceBesideTwoThousandStrangers) {
  constexpr int kRanks = 8000, kStrangers = 2000, kRelays = 4;
  if (raise_open_file_limit() < kRanks + kStrangers + 1000) GTEST_SKIP() << "needs 11,000 open files";
  const JobKey key = make_job_key();
  Child server(server_process(key, kRanks));
  const int port = static_cast<int>(server.number());
  ASSERT_GT(port, 0);
  std::vector<std::unique_ptr<Child>> others;
  std::vector<int> ports;
  for (int i = 0; i < kRelays; ++i) {
    others.push_back(std::make_unique<Child>(relay_process(port, 50ms)));
    ports.push_back(static_cast<int>(others.back()->number()));
  }
  others.push_back(std::make_unique<Child>(strangers_process(port, kStrangers)));
  EXPECT_EQ(others.back()->number(), kStrangers);
  Outcome outcome;
  asio::io_context io(1);
  const auto begin = Clock::now();
  run_on_loop(io, all_join_and_meet(key, kRanks, ports, outcome));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  server.end();
  const auto late_ms = server.number(), kb = server.number();
  std::printf("joined in %lld ms, %d retries; event loop late by at most %lld ms; server %lld kB\n",
              static_cast<long long>(took), outcome.n_retries, static_cast<long long>(late_ms),
              static_cast<long long>(kb));
  EXPECT_EQ(outcome.n_joined, kRanks);
  EXPECT_EQ(outcome.n_met, kRanks);
  EXPECT_LT(late_ms, 1000);
  EXPECT_LT(kb, 256 << 10);
}

struct LargeValue {
  std::string value = std::string(kMaxValue, 'v');
  int n_right = 0;
};

// Asks for the key and reads nothing until `go`.
Task<void> wait_for_large_value(Rank& rank, bool reads, Event& go, LargeValue& large) {
  GetMessage get;
  get.request = 1;
  get.key = "large";
  get.timeout_ms = kLongTimeoutMs;
  const bool sent = co_await rank.send(get);
  if (!sent || !reads) co_return;
  co_await go.wait();
  const auto reply = co_await rank.receive();
  const auto* value = reply ? std::get_if<ValueReply>(&*reply) : nullptr;
  if (value != nullptr && *value->value == large.value) ++large.n_right;
}

Task<void> set_large_value(const JobKey& key, int n_ranks, int n_readers, int port, LargeValue& large, bool& done) {
  const auto executor = co_await asio::this_coro::executor;
  std::vector<std::unique_ptr<Rank>> ranks;
  int n_retries = 0;
  for (int rank = 0; rank < n_ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(executor, key, rank, port));
    const bool joined = co_await ranks.back()->join(Clock::now() + 20s, n_retries);
    if (!joined) co_return;
  }
  TaskGroup tasks(executor);
  Event go(executor);
  for (int rank = 1; rank < n_ranks; ++rank) {
    Rank& waiter = *ranks[static_cast<std::size_t>(rank)];
    tasks.spawn(wait_for_large_value(waiter, rank <= n_readers, go, large));
  }
  SetMessage set;
  set.request = 1;
  set.key = "large";
  set.value = large.value;
  const bool sent = co_await ranks[0]->send(set);
  const auto reply = co_await ranks[0]->receive();
  done = sent && reply && std::holds_alternative<DoneReply>(*reply);
  go.notify();
  co_await tasks.join();
}

TEST(LargeValue, CostsOneCopyForRanksThatDoNotReadIt) {
  constexpr int kRanks = 300, kReaders = 20;
  const JobKey key = make_job_key();
  Child server(server_process(key, kRanks));
  const int port = static_cast<int>(server.number());
  ASSERT_GT(port, 0);
  LargeValue large;
  bool done = false;
  asio::io_context io(1);
  run_on_loop(io, set_large_value(key, kRanks, kReaders, port, large, done));
  server.end();
  const auto late_ms = server.number(), kb = server.number();
  std::printf("event loop late by at most %lld ms; server %lld kB\n", static_cast<long long>(late_ms),
              static_cast<long long>(kb));
  EXPECT_TRUE(done);
  EXPECT_EQ(large.n_right, kReaders);
  EXPECT_LT(late_ms, 1000);
  EXPECT_LT(kb, 64 << 10);
}

}  // namespace
}  // namespace drun::rendezvous::simulated
