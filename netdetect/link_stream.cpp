#include "netdetect/link_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "netdetect/arrival_meter.h"
#include "netdetect/tcp_info.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;

constexpr std::size_t kSendPiece = 512u << 10;
constexpr std::size_t kReceivePiece = 1u << 20;
// A sender continues this long after its own window, because the peer's begins half a round trip later.
constexpr std::chrono::milliseconds kSendOn{300};

struct Running {
  explicit Running(const StreamPlan& p)
      : plan(p),
        meter(p.begin + p.time / 4, p.begin + p.time),
        payload(p.segment_bytes > 0 ? p.segment_bytes : kSendPiece, '\0'),
        room(kReceivePiece, '\0') {}

  // After the end of the window a break is no error: the other side has finished.
  void broke(int why) {
    if (over || Clock::now() > meter.end()) return;
    if (error.empty()) error = why == 0 ? "the other side closed it" : std::strerror(why);
    plan.over->notify();
  }

  StreamPlan plan;
  ArrivalMeter meter;
  std::string payload, room;
  std::string error;
  bool over = false;
};

Task<void> send_all(LinkSocket socket, std::shared_ptr<Running> running) {
  const auto executor = co_await asio::this_coro::executor;
  const Deadline until = running->meter.end() + kSendOn;
  // MSG_EOR: the kernel appends no other bytes to the segment or frame that ends a record.
  const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (running->plan.segment_bytes > 0 ? MSG_EOR : 0);
  while (!running->over && Clock::now() < until) {
    const ssize_t n = ::send(socket->native_handle(), running->payload.data(), running->payload.size(), flags);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) {
      running->broke(errno);
      co_return;
    }
    if (n == static_cast<ssize_t>(running->payload.size())) {
      co_await asio::post(executor, asio::use_awaitable);  // lets other coroutines run
    } else {
      const auto [ec] = co_await socket->async_wait(tcp::socket::wait_write, as_result);
      if (ec) co_return;
    }
  }
}

// MSG_TRUNC: the kernel discards the bytes, because copying them would measure the memory.
Task<void> receive_all(LinkSocket socket, std::shared_ptr<Running> running) {
  const auto executor = co_await asio::this_coro::executor;
  while (!running->over) {
    const ssize_t n =
        ::recv(socket->native_handle(), running->room.data(), running->room.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
      running->broke(n == 0 ? 0 : errno);
      co_return;
    }
    if (n > 0) {
      running->meter.add(Clock::now(), static_cast<std::size_t>(n));
      co_await asio::post(executor, asio::use_awaitable);
    } else {
      const auto [ec] = co_await socket->async_wait(tcp::socket::wait_read, as_result);
      if (ec) co_return;
    }
  }
}

}  // namespace

void close_by_reset(tcp::socket& socket) {
  boost::system::error_code ignored;
  if (!socket.is_open()) return;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

Task<StreamResult> run_streams(std::vector<LinkSocket> sockets, StreamPlan plan, std::shared_ptr<Stopping> stopping) {
  const auto over = plan.over;
  const OnStop on_stop(stopping, [over] { over->notify(); });
  auto running = std::make_shared<Running>(plan);
  TaskGroup tasks(co_await asio::this_coro::executor);
  for (const auto& socket : sockets) {
    if (plan.max_rate > 0) limit_pace(socket->native_handle(), plan.max_rate / 8 / sockets.size());
    if (plan.sends) tasks.spawn(send_all(socket, running));
    if (plan.receives) tasks.spawn(receive_all(socket, running));
  }
  co_await over->wait_until(plan.give_up);
  StreamResult result;
  for (const auto& socket : sockets) {
    const TcpCounts counts = tcp_counts(socket->native_handle());
    result.figures.n_segments += counts.n_segments;
    result.figures.n_retransmits += counts.n_retransmits;
  }
  running->over = true;
  for (const auto& socket : sockets) close_by_reset(*socket);
  co_await tasks.join();
  result.figures.bits_per_second = running->meter.bits_per_second();
  result.figures.seconds = running->meter.seconds();
  result.error = running->error;
  co_return result;
}

}  // namespace drun::netdetect
