#include "launcher/agent/stdin_pump.h"

#include <boost/asio/write.hpp>

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
  queue_.push_back(std::move(bytes));
  wake_.notify();
}

void StdinPump::end() {
  if (is_pty_) queue_.push_back("\x04");  // a terminal's EOF
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

Task<void> StdinPump::run() {
  while (stream_.is_open()) {
    if (queue_.empty()) {
      if (ended_) break;
      co_await wake_.wait_and_reset();
      continue;
    }
    const std::string bytes = std::move(queue_.front());
    queue_.pop_front();
    const auto buffer = asio::buffer(bytes);
    const auto [ec, n] = co_await asio::async_write(stream_, buffer, as_result);
    if (ec) {
      if (ec != asio::error::operation_aborted) refused_();
      close();
      break;
    }
    consumed_(n);
  }
  boost::system::error_code ignored;
  stream_.close(ignored);
}

}  // namespace drun::agent
