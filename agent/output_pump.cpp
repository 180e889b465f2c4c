#include "agent/output_pump.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "control/frames.h"
#include "control/output_credit.h"

namespace drun::agent {

using control::kMinCharge;
using control::output_charge;

namespace {

// Maximum number of unread bytes that were written before now. For a terminal, FIONREAD reports only what its line
// discipline holds, not what is on the way to it.
int most_in(int fd) {
  if (::isatty(fd) == 1) return OutputPump::kTerminalHolds;
  int n_bytes = 0;
  return ::ioctl(fd, FIONREAD, &n_bytes) == 0 ? n_bytes : 0;
}

}  // namespace

OutputPump::OutputPump(asio::io_context& io, Fd fd, std::size_t credit, std::function<void(std::string)> emit,
                       std::function<void()> ended)
    : stream_(io), credit_(credit), emit_(std::move(emit)), ended_(std::move(ended)), wake_(io.get_executor()) {
  if (fd) {
    set_nonblocking(fd.get(), true);
    stream_.assign(fd.release());
  }
}

void OutputPump::add_credit(std::size_t n_bytes) {
  credit_ += std::min(n_bytes, SIZE_MAX - credit_);
  wake_.notify();
}

void OutputPump::finish_soon() {
  if (finishing_) return;
  finishing_ = true;
  if (stream_.is_open()) finish_left_ = most_in(stream_.native_handle());
  wake_.notify();
  if (stream_.is_open()) stream_.cancel();
}

void OutputPump::resize_terminal(TerminalSize size) {
  if (stream_.is_open()) set_terminal_size(stream_.native_handle(), size);
}

void OutputPump::send(std::string chunk) {
  credit_ -= output_charge(chunk.size());
  emit_(std::move(chunk));
}

void OutputPump::note_line(std::string_view chunk) {
  if (chunk.back() == '\n') {
    unfinished_at_ = Deadline::max();
  } else if (unfinished_at_ == Deadline::max() || chunk.find('\n') != std::string_view::npos) {
    unfinished_at_ = Clock::now() + kUnfinished;
  }
}

Task<void> OutputPump::wait_readable() {
  while (!finishing_ && stream_.is_open() && unfinished_at_ != Deadline::max()) {
    pollfd p{stream_.native_handle(), POLLIN, 0};
    if (::poll(&p, 1, 0) != 0) co_return;
    if (Clock::now() >= unfinished_at_) {
      unfinished_at_ = Deadline::max();
      send({});
      break;
    }
    DeadlineGuard unfinished(stream_.get_executor(), unfinished_at_, [this] { stream_.cancel(); });
    co_await stream_.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
  }
  if (!finishing_ && stream_.is_open()) {
    co_await stream_.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
  }
}

// False at the end of the stream.
bool OutputPump::read_available() {
  while (credit_ >= kMinCharge) {
    if (finishing_ && finish_left_ <= 0) return false;
    std::string chunk(std::min(credit_, control::kMaxOutputChunk), '\0');
    const ssize_t n = ::read(stream_.native_handle(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return !finishing_;  // after the worker's end, empty is the end
    if (n <= 0) return false;                          // EOF, or EIO: a pty whose last user is gone
    chunk.resize(static_cast<std::size_t>(n));
    finish_left_ -= static_cast<int>(n);
    note_line(chunk);
    send(std::move(chunk));
    if (!finishing_) return true;
  }
  return true;
}

Task<void> OutputPump::run() {
  while (stream_.is_open()) {
    if (credit_ < kMinCharge) {
      co_await wake_.wait_and_reset();
      continue;
    }
    if (!finishing_) co_await wait_readable();
    if (!read_available()) break;
  }
  boost::system::error_code ignored;
  stream_.close(ignored);
  done_ = true;
  ended_();
}

}  // namespace drun::agent
