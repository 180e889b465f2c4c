#include "agent/stdin_pump.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace drun::agent {

StdinPump::StdinPump(asio::io_context& io, Fd fd, bool is_pty, std::function<void(std::size_t)> consumed,
                     std::function<void()> refused)
    : stream_(io),
      is_pty_(is_pty),
      consumed_(std::move(consumed)),
      refused_(std::move(refused)),
      wake_(io.get_executor()) {
  if (fd) stream_.assign(fd.release());
}

void StdinPump::deliver(std::string bytes) {
  if (ended_) return;
  if (!bytes.empty()) in_line_ = bytes.back() != '\n';
  queue_.push_back(std::move(bytes));
  wake_.notify();
}

void StdinPump::end() {
  // A terminal's EOF key ends a line that has no end yet, or else the input.
  if (is_pty_) queue_.push_back(in_line_ ? "\x04\x04" : "\x04");
  ended_ = true;
  wake_.notify();
}

void StdinPump::close() {
  ended_ = true;
  queue_.clear();
  boost::system::error_code ignored;
  stream_.close(ignored);
  wake_.notify();
}

// True if the worker has read since the last poll. Always false for a terminal, because FIONREAD here does not count
// what its worker's side holds.
bool StdinPump::worker_has_read() {
  int in_pipe = 0;
  if (is_pty_ || ::ioctl(stream_.native_handle(), FIONREAD, &in_pipe) != 0) return false;
  const std::uint64_t read = written_ - std::min(written_, static_cast<std::uint64_t>(in_pipe));
  return read > std::exchange(seen_read_, read);
}

Task<StdinPump::Outcome> StdinPump::write(const std::string& bytes) {
  std::size_t n_written = 0, n_told = 0;
  Deadline look_at = Clock::now() + kPollInterval;
  while (n_written < bytes.size()) {
    const auto rest = asio::buffer(bytes) + n_written;
    DeadlineGuard poll(stream_.get_executor(), look_at, [this] {
      boost::system::error_code ignored;  // close() may have come first
      stream_.cancel(ignored);
    });
    const auto [ec, n] = co_await stream_.async_write_some(rest, as_result);
    n_written += n;
    written_ += n;
    if (!stream_.is_open()) co_return Outcome::kClosed;
    if (ec && ec != asio::error::operation_aborted) co_return Outcome::kRefused;
    if (Clock::now() < look_at || n_written == bytes.size()) continue;
    const bool has_read = worker_has_read();
    if (has_read || n_written > n_told) consumed_(n_written - n_told);
    n_told = n_written;
    look_at = Clock::now() + kPollInterval;
  }
  consumed_(n_written - n_told);
  co_return Outcome::kWritten;
}

Task<void> StdinPump::run() {
  while (stream_.is_open()) {
    if (queue_.empty()) {
      if (ended_) break;
      co_await wake_.wait_and_reset();
      continue;
    }
    const std::string bytes = std::move(queue_.front());
    queue_.pop_front();
    const Outcome outcome = co_await write(bytes);
    if (outcome == Outcome::kWritten) continue;
    if (outcome == Outcome::kRefused) refused_();
    close();
    break;
  }
  boost::system::error_code ignored;
  stream_.close(ignored);
}

}  // namespace drun::agent
