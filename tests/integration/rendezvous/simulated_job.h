// The rendezvous of a job without its workers: a server in a process of its own, and ranks that are connections of one
// thread. For a test of thousands of ranks, and for perf/rendezvous.
#pragma once

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
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/asio.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "rendezvous/blocking.h"
#include "rendezvous/listening.h"
#include "rendezvous/message_type.h"
#include "rendezvous/protocol.h"
#include "rendezvous/retry.h"
#include "rendezvous/server.h"

namespace drun::rendezvous::simulated {

using namespace std::chrono_literals;
using Tcp = asio::ip::tcp;

inline constexpr std::uint32_t kLongTimeoutMs = 60'000;

inline Tcp::endpoint at(int port) { return {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)}; }

// A child that runs `body`, which writes to the first descriptor and ends when it can read from the second one.
class Child {
 public:
  explicit Child(const std::function<void(int out, int end)>& body) {
    auto out = make_pipe(), end = make_pipe();
    if (!out || !end) std::abort();
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

  // The next number that the child writes; -1 if it writes none.
  std::int64_t number() {
    std::int64_t value = -1;
    if (::read(out_.get(), &value, sizeof value) != static_cast<ssize_t>(sizeof value)) return -1;
    return value;
  }
  void end() { (void)!::write(end_.get(), "\n", 1); }

 private:
  pid_t pid_ = -1;
  Fd out_, end_;
};

inline void write_number(int fd, std::int64_t value) { (void)!::write(fd, &value, sizeof value); }

// Waits until the test writes to the other end.
inline Task<void> wait_for_end(int fd) {
  asio::posix::stream_descriptor end(co_await asio::this_coro::executor, fd);
  std::array<char, 1> byte;
  const auto buffer = asio::buffer(byte);
  co_await end.async_read_some(buffer, as_result);
  end.release();
}

// The server

inline std::int64_t peak_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  }
  return -1;
}

// Time for which this process has waited for a processor, which other processes had.
inline std::chrono::nanoseconds time_without_processor() {
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

inline Task<void> watch_lateness(Lateness& lateness) {
  while (!lateness.over) {
    const Deadline due = Clock::now() + 10ms;
    const auto before = time_without_processor();
    co_await sleep_until(due);
    const auto stolen = time_without_processor() - before;
    lateness.max = std::max<Clock::duration>(lateness.max, Clock::now() - due - stolen);
  }
}

// Serves in a process of its own: tells the port, and at the end how late the loop was (ms) and the peak memory (KiB).
template <typename AnyServer>
Task<void> measure_until_end(AnyServer& server, int out, int end) {
  const auto executor = co_await asio::this_coro::executor;
  const auto port = server.listen("127.0.0.1");
  write_number(out, port.value_or(-1));
  Lateness lateness;
  TaskGroup tasks(executor);
  tasks.spawn(watch_lateness(lateness));
  co_await wait_for_end(end);
  write_number(out, std::chrono::duration_cast<std::chrono::milliseconds>(lateness.max).count());
  write_number(out, peak_kb());
  lateness.over = true;
  server.stop();
  co_await server.join();
  co_await tasks.join();
}

inline Task<void> serve_until_end(const JobKey& key, int n_ranks, int out, int end) {
  const auto executor = co_await asio::this_coro::executor;
  std::vector<Member> members(static_cast<std::size_t>(n_ranks));
  for (int rank = 0; rank < n_ranks; ++rank) {
    Member& m = members[static_cast<std::size_t>(rank)];
    m.rank = rank;
    m.host_index = rank / 8;
    m.host = "node" + std::to_string(1000 + rank / 8);
  }
  const auto server = Server::create(executor, key, std::move(members), "job", ServerEvents());
  co_await measure_until_end(*server, out, end);
}

inline std::function<void(int, int)> server_process(const JobKey& key, int n_ranks) {
  return [key, n_ranks](int out, int end) {
    asio::io_context io(1);
    run_on_loop(io, serve_until_end(key, n_ranks, out, end));
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
    const auto plain = co_await receive_plain();
    if (!plain) co_return std::nullopt;
    auto message = decode_server_message(*plain);
    if (!message) co_return std::nullopt;
    co_return std::move(*message);
  }

 private:
  Task<std::optional<std::string>> receive_plain() {
    std::string prefix(4, '\0');
    const auto buffer = asio::buffer(prefix);
    const auto [ec, n] = co_await asio::async_read(socket_, buffer, as_result);
    const auto n_bytes = FrameCipher::body_size(prefix);
    if (ec || !n_bytes) co_return std::nullopt;
    std::string body(*n_bytes, '\0');
    const auto body_buffer = asio::buffer(body);
    const auto [body_ec, body_n] = co_await asio::async_read(socket_, body_buffer, as_result);
    auto plain = streams_.receive.open(body);
    if (body_ec || !plain) co_return std::nullopt;
    co_return std::move(*plain);
  }
  // The rank that a WELCOME names. The list of hosts is not decoded: each rank of a real job does that for itself, here
  // one thread would do it for all.
  static std::optional<int> rank_of_welcome(const std::string& plain) {
    ByteReader in(plain);
    if (in.u8() != static_cast<std::uint8_t>(MessageType::kWelcome)) return std::nullopt;
    (void)in.str();  // the job's id
    return in.i32();
  }
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
    const auto reply = co_await receive_plain();
    co_return reply&& rank_of_welcome(*reply) == rank_;
  }

  Tcp::socket socket_;
  const JobKey& key_;
  int rank_, port_;
  SecureStreams streams_;
};

}  // namespace drun::rendezvous::simulated
