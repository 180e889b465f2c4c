// The server under the largest load that a job makes: all ranks at once, over a slow path, and strangers beside them.
// Server, relays and strangers are processes of their own, because each needs thousands of descriptors.
#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/accept.h"
#include "base/asio.h"
#include "base/fd.h"
#include "rendezvous/blocking.h"
#include "rendezvous/listening.h"
#include "rendezvous/protocol.h"
#include "rendezvous/retry.h"
#include "rendezvous/server.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;
using Tcp = asio::ip::tcp;

constexpr std::uint32_t kLongTimeoutMs = 60'000;

Tcp::endpoint at(int port) { return {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)}; }

// A child that runs `body`, which writes to the first descriptor and ends when it can read from the second one.
class Child {
 public:
  explicit Child(const std::function<void(int out, int end)>& body) {
    auto out = make_pipe(), end = make_pipe();
    EXPECT_TRUE(out && end);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      out->read.reset();
      end->write.reset();
      body(out->write.get(), end->read.get());
      ::_exit(0);
    }
    out_ = std::move(out->read);
    end_ = std::move(end->write);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next number that the child writes.
  std::int64_t number() {
    std::int64_t value = -1;
    EXPECT_EQ(::read(out_.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }
  void end() { (void)!::write(end_.get(), "\n", 1); }

 private:
  pid_t pid_ = -1;
  Fd out_, end_;
};

void write_number(int fd, std::int64_t value) { (void)!::write(fd, &value, sizeof value); }

// Waits until the test writes to the other end.
Task<void> wait_for_end(int fd) {
  asio::posix::stream_descriptor end(co_await asio::this_coro::executor, fd);
  std::array<char, 1> byte;
  const auto buffer = asio::buffer(byte);
  co_await end.async_read_some(buffer, as_result);
  end.release();
}

// The server

std::int64_t peak_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  }
  return -1;
}

// Time for which this process has waited for a processor, which other processes had.
std::chrono::nanoseconds time_without_processor() {
  std::ifstream file("/proc/self/schedstat");
  std::int64_t ran_ns = 0, waited_ns = 0;
  file >> ran_ns >> waited_ns;
  return std::chrono::nanoseconds(waited_ns);
}

// The longest time that a heartbeat would have waited for the server.
struct Lateness {
  Clock::duration max{};
  bool over = false;
};

Task<void> watch_lateness(Lateness& lateness) {
  while (!lateness.over) {
    const Deadline due = Clock::now() + 10ms;
    const auto before = time_without_processor();
    co_await sleep_until(due);
    const auto stolen = time_without_processor() - before;
    lateness.max = std::max<Clock::duration>(lateness.max, Clock::now() - due - stolen);
  }
}

Task<void> serve_until_end(const JobKey& key, int n_ranks, int out, int end) {
  const auto executor = co_await asio::this_coro::executor;
  std::vector<Member> members(static_cast<std::size_t>(n_ranks));
  for (int rank = 0; rank < n_ranks; ++rank) {
    Member& m = members[static_cast<std::size_t>(rank)];
    m.rank = rank;
    m.host_index = rank / 8;
    m.host = "node" + std::to_string(1000 + rank / 8);
  }
  const auto server = Server::create(executor, key, std::move(members), "job", ServerEvents());
  const auto port = server->listen("127.0.0.1");
  write_number(out, port.value_or(-1));
  Lateness lateness;
  TaskGroup tasks(executor);
  tasks.spawn(watch_lateness(lateness));
  co_await wait_for_end(end);
  write_number(out, std::chrono::duration_cast<std::chrono::milliseconds>(lateness.max).count());
  write_number(out, peak_kb());
  lateness.over = true;
  server->stop();
  co_await server->join();
  co_await tasks.join();
}

std::function<void(int, int)> server_process(const JobKey& key, int n_ranks) {
  return [key, n_ranks](int out, int end) {
    asio::io_context io(1);
    run_on_loop(io, serve_until_end(key, n_ranks, out, end));
  };
}

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

// Connects and says nothing, and connects again when the server closes.
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

// A rank's connection: the client's handshake and messages, without a thread for each rank.
class Rank {
 public:
  Rank(const asio::any_io_executor& executor, const JobKey& key, int rank, int port)
      : socket_(executor), key_(key), rank_(rank), port_(port) {}

  // As Client::join(). False after `deadline`.
  Task<bool> join(Deadline deadline, int& n_retries) {
    for (int n_failed = 1;; ++n_failed) {
      const bool joined = co_await try_to_join();
      if (joined) co_return true;
      boost::system::error_code ignored;
      socket_.close(ignored);
      const Deadline next = Clock::now() + retry_pause(n_failed, randombytes_random());
      if (next > deadline) co_return false;
      ++n_retries;
      co_await sleep_until(next);
    }
  }
  Task<bool> send(ClientMessage message) {
    const std::string frame = streams_.send.seal(encode(message));
    const auto buffer = asio::buffer(frame);
    const auto [ec, n] = co_await asio::async_write(socket_, buffer, as_result);
    co_return !ec;
  }
  Task<std::optional<ServerMessage>> receive() {
    std::string prefix(4, '\0');
    const auto buffer = asio::buffer(prefix);
    const auto [ec, n] = co_await asio::async_read(socket_, buffer, as_result);
    const auto n_bytes = FrameCipher::body_size(prefix);
    if (ec || !n_bytes) co_return std::nullopt;
    std::string body(*n_bytes, '\0');
    const auto body_buffer = asio::buffer(body);
    const auto [body_ec, body_n] = co_await asio::async_read(socket_, body_buffer, as_result);
    const auto plain = streams_.receive.open(body);
    if (body_ec || !plain) co_return std::nullopt;
    auto message = decode_server_message(*plain);
    if (!message) co_return std::nullopt;
    co_return std::move(*message);
  }

 private:
  Task<bool> try_to_join() {
    const auto server = at(port_);
    const auto [connect_ec] = co_await socket_.async_connect(server, as_result);
    if (connect_ec) co_return false;
    tune_tcp(socket_.native_handle());
    ClientHandshake handshake(key_, Purpose::kRendezvous);
    const std::string hello = handshake.hello();
    const auto hello_buffer = asio::buffer(hello);
    const auto [hello_ec, n_hello] = co_await asio::async_write(socket_, hello_buffer, as_result);
    if (hello_ec) co_return false;
    std::string answer(kServerHelloBytes, '\0');
    const auto answer_buffer = asio::buffer(answer);
    const auto [answer_ec, n_answer] = co_await asio::async_read(socket_, answer_buffer, as_result);
    if (answer_ec) co_return false;
    const auto proof = handshake.finish(answer);
    if (!proof) co_return false;
    const auto proof_buffer = asio::buffer(*proof);
    const auto [proof_ec, n_proof] = co_await asio::async_write(socket_, proof_buffer, as_result);
    if (proof_ec) co_return false;
    streams_ = handshake.streams();
    JoinMessage join;
    join.rank = rank_;
    join.pid = 1;
    const bool sent = co_await send(join);
    if (!sent) co_return false;
    const auto reply = co_await receive();
    const auto* welcome = reply ? std::get_if<Welcome>(&*reply) : nullptr;
    co_return welcome != nullptr && welcome->rank == rank_;
  }

  Tcp::socket socket_;
  const JobKey& key_;
  int rank_, port_;
  SecureStreams streams_;
};

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
}  // namespace drun::rendezvous
