#include "launcher/output/stdin_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace drun::launcher {

namespace {
constexpr std::size_t kChunk = 64u << 10;
constexpr auto kBackgroundCheck = std::chrono::milliseconds(500);
constexpr auto kTakenPause = std::chrono::milliseconds(10);

bool in_background() {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground >= 0 && foreground != ::getpgrp();
}
}  // namespace

StdinReader::StdinReader(asio::io_context& io, std::size_t credit, OnBytes bytes, std::function<void()> ended)
    : epoll_(io), credit_(credit), bytes_(std::move(bytes)), ended_(std::move(ended)), wake_(io.get_executor()) {
  Fd instance(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  own_ = reopen_nonblocking(STDIN_FILENO, O_RDONLY);
  // A regular file can't be polled (EPERM): it is always readable.
  if (instance && ::epoll_ctl(instance.get(), EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0) {
    epoll_.assign(instance.release());
    pollable_ = true;
  }
}

void StdinReader::add_credit(std::size_t n_bytes) {
  if (n_bytes == 0) return;
  credit_ += n_bytes;
  wake_.notify();
}

void StdinReader::stop() {
  stopping_ = true;
  boost::system::error_code ignored;
  epoll_.close(ignored);
  own_.reset();
  wake_.notify();
}

// Or until more credit or the end.
Task<void> StdinReader::pause(std::chrono::milliseconds time) {
  co_await wake_.wait_until(Clock::now() + time);
  if (!stopping_) wake_.reset();
}

Task<bool> StdinReader::wait_readable() {
  while (!stopping_) {
    if (in_background()) {
      co_await pause(kBackgroundCheck);
      continue;
    }
    if (!pollable_) co_return true;
    pollfd p{STDIN_FILENO, POLLIN, 0};
    if (::poll(&p, 1, 0) > 0) co_return true;
    const auto [ec] = co_await epoll_.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
    if (ec) co_return false;
  }
  co_return false;
}

long StdinReader::read_some(char* out, std::size_t n) const {
  if (own_) return ::read(own_.get(), out, n);
  const long received = ::recv(STDIN_FILENO, out, n, MSG_DONTWAIT);
  return received < 0 && errno == ENOTSOCK ? ::read(STDIN_FILENO, out, n) : received;
}

Task<void> StdinReader::run() {
  std::string buffer(kChunk, '\0');
  while (!stopping_) {
    if (credit_ == 0) {
      co_await wake_.wait_and_reset();
      continue;
    }
    const bool readable = co_await wait_readable();
    if (!readable || stopping_) break;
    const long n = read_some(buffer.data(), std::min(credit_, buffer.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // another program was faster
      co_await pause(kTakenPause);
      continue;
    }
    if (n <= 0) {
      ended_();
      break;
    }
    credit_ -= static_cast<std::size_t>(n);
    bytes_(buffer.substr(0, static_cast<std::size_t>(n)));
  }
}

}  // namespace drun::launcher
