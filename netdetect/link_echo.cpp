#include "netdetect/link_echo.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "netdetect/tcp_info.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t kWarmUp = 5;
constexpr microseconds kSpin{50};   // a wake-up of a sleeping thread costs as much as a round trip on a good network
constexpr int kPollMs = 1;          // longer round trips wait in the event loop, whose overhead is noise there
constexpr std::uint32_t kFew = 10;  // fewer round trips may all include a retransmission
constexpr milliseconds kTurn{20};   // maximum time without a turn for other coroutines

using Message = std::array<char, kEchoBytes>;

// Sends all of a message, which is small enough for the socket buffer. False: the connection has ended.
bool send_message(int fd, const Message& message) {
  const ssize_t n = ::send(fd, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return n == static_cast<ssize_t>(message.size());
}

// Waits briefly for the rest of a message. 1: complete; 0: not yet; -1: the connection has ended.
int receive_some(int fd, Message& message, std::size_t& n_have) {
  const auto spin_until = Clock::now() + kSpin;
  bool polled = false;
  for (;;) {
    const ssize_t n = ::recv(fd, message.data() + n_have, message.size() - n_have, MSG_DONTWAIT);
    if (n > 0) {
      n_have += static_cast<std::size_t>(n);
      if (n_have == message.size()) return 1;
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return -1;
    if (Clock::now() < spin_until) {
      ::sched_yield();  // the other end may need this processor
      continue;
    }
    if (polled) return 0;
    pollfd what = {fd, POLLIN, 0};
    ::poll(&what, 1, kPollMs);
    polled = true;
  }
}

// False: the connection has ended.
Task<bool> receive_message(LinkSocket socket, Message& message) {
  std::size_t n_have = 0;
  for (;;) {
    if (!socket->is_open()) co_return false;
    const int state = receive_some(socket->native_handle(), message, n_have);
    if (state != 0) co_return state > 0;
    const auto [ec] = co_await socket->async_wait(tcp::socket::wait_read, as_result);
    if (ec) co_return false;
  }
}

}  // namespace

RoundTrips summarize(std::vector<double> micros) {
  RoundTrips out;
  out.n = static_cast<std::uint32_t>(micros.size());
  if (micros.empty()) return out;
  std::sort(micros.begin(), micros.end());
  const auto rank = [&](double share) {
    const auto k = static_cast<std::size_t>(std::ceil(share * static_cast<double>(micros.size())));
    return micros[std::max<std::size_t>(k, 1) - 1];
  };
  out.median_us = rank(0.5);
  out.p99_us = rank(0.99);
  out.min_us = micros.front();
  return out;
}

Task<RoundTrips> measure_round_trips(LinkSocket socket, std::uint32_t n, milliseconds limit) {
  const auto executor = co_await asio::this_coro::executor;
  const Deadline end = Clock::now() + limit;
  Deadline turn = Clock::now() + kTurn;
  std::vector<double> micros;
  double shortest = 0;
  Message message{};
  for (std::uint32_t i = 0; i < n + kWarmUp; ++i) {
    const auto began = Clock::now();
    if (began >= end && !micros.empty()) break;
    if (!socket->is_open() || !send_message(socket->native_handle(), message)) break;
    const bool received = co_await receive_message(socket, message);
    if (!received) break;
    const auto now = Clock::now();
    const double took = std::chrono::duration<double, std::micro>(now - began).count();
    if (i >= kWarmUp || now >= end) micros.push_back(took);
    shortest = i == 0 ? took : std::min(shortest, took);
    if (now >= turn) {
      co_await asio::post(executor, asio::use_awaitable);
      turn = Clock::now() + kTurn;
    }
  }
  RoundTrips trips = summarize(std::move(micros));
  if (trips.n == 0) co_return trips;
  trips.min_us = shortest;
  const double of_tcp = trips.n < kFew && socket->is_open() ? tcp_shortest_round_trip_us(socket->native_handle()) : 0;
  if (of_tcp > 0) trips.min_us = std::min(trips.min_us, of_tcp);
  co_return trips;
}

Task<void> echo(LinkSocket socket) {
  const auto executor = co_await asio::this_coro::executor;
  Deadline turn = Clock::now() + kTurn;
  Message message{};
  for (;;) {
    const bool received = co_await receive_message(socket, message);
    if (!received || !socket->is_open() || !send_message(socket->native_handle(), message)) break;
    if (Clock::now() >= turn) {
      co_await asio::post(executor, asio::use_awaitable);
      turn = Clock::now() + kTurn;
    }
  }
}

}  // namespace drun::netdetect
