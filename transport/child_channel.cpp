#include "transport/child_channel.h"

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <string_view>

#include "transport/text_tail.h"

namespace drun::transport {
namespace {

// Maximum time between the end of stdout and the exit of the child, and between its exit and the end of a stderr that
// another process still holds open.
constexpr auto kExitGrace = std::chrono::seconds(2);
constexpr auto kStderrGrace = std::chrono::milliseconds(500);

class ChildChannel final : public Channel {
 public:
  ChildChannel(asio::io_context& io, std::unique_ptr<ChildProcess> child, ChildProcess::Ending ending, Fd in, Fd out,
               Fd err)
      : child_(std::move(child)),
        ending_(ending),
        stdin_(io, in.release()),
        stdout_(io, out.release()),
        stderr_(io, err.release()),
        stderr_done_(io.get_executor()),
        tasks_(io.get_executor()) {
    tasks_.spawn(drain_stderr());
  }

  Task<Result<std::size_t>> read_some(asio::mutable_buffer buffer) override {
    if (!stdout_.is_open()) co_return fail(Errc::kCanceled, "read: closed");
    auto [ec, n] = co_await stdout_.async_read_some(buffer, as_result);
    if (closed_) co_return fail(Errc::kCanceled, "read: closed");
    if (!ec) co_return n;
    if (ec != asio::error::eof) co_return fail(asio_error(ec, "read"));
    const bool ended = co_await child_->wait_until(Clock::now() + kExitGrace);
    if (ended) co_await stderr_done_.wait();  // bounded by shut_stderr_after_exit
    if (closed_) co_return fail(Errc::kCanceled, "read: closed");
    co_return std::size_t{0};
  }

  Task<Result<void>> write(asio::const_buffer buffer) override {
    if (!stdin_.is_open()) co_return fail(closed_ ? Errc::kCanceled : Errc::kClosed, "write: closed");
    auto [ec, n] = co_await asio::async_write(stdin_, buffer, as_result);
    if (closed_) co_return fail(Errc::kCanceled, "write: closed");
    if (ec == asio::error::broken_pipe) co_return fail(Errc::kClosed, "write: closed by the other side");
    if (ec) co_return fail(asio_error(ec, "write"));
    co_return Result<void>{};
  }

  void close_write() override { shut(stdin_); }
  std::string stderr_text() const override { return stderr_tail_.str(); }
  int exit_status() const override { return child_->exit_status(); }

  void close() override {
    closed_ = true;
    shut(stdin_);
    shut(stdout_);
    child_->end(ending_);
  }

  Task<void> join() override {
    co_await child_->join();
    co_await tasks_.join();
  }

 private:
  static void shut(asio::posix::stream_descriptor& descriptor) {
    boost::system::error_code ignored;
    descriptor.close(ignored);
  }

  Task<void> drain_stderr() {
    tasks_.spawn(shut_stderr_after_exit());
    std::array<char, 4096> buffer;
    for (;;) {
      auto [ec, n] = co_await stderr_.async_read_some(asio::buffer(buffer), as_result);
      if (ec) break;
      stderr_tail_.append(std::string_view(buffer.data(), n));
    }
    stderr_done_.notify();
  }

  Task<void> shut_stderr_after_exit() {
    co_await child_->join();
    co_await stderr_done_.wait_until(Clock::now() + kStderrGrace);
    shut(stderr_);
  }

  std::unique_ptr<ChildProcess> child_;
  ChildProcess::Ending ending_;
  asio::posix::stream_descriptor stdin_, stdout_, stderr_;
  TextTail stderr_tail_;
  bool closed_ = false;
  Event stderr_done_;
  TaskGroup tasks_;
};

}  // namespace

Result<std::unique_ptr<Channel>> spawn_child_channel(asio::io_context& io, const std::vector<std::string>& argv,
                                                     ChildProcess::Ending ending) {
  ignore_sigpipe();
  auto in = make_pipe();
  auto out = in ? make_pipe() : fail(in.error());
  auto err = out ? make_pipe() : fail(out.error());
  if (!err) return fail(err.error());
  auto child = ChildProcess::start(io, argv, in->read.get(), out->write.get(), err->write.get(), !ending.is_agent);
  if (!child) return fail(child.error());
  return std::make_unique<ChildChannel>(io, std::move(*child), ending, std::move(in->write), std::move(out->read),
                                        std::move(err->read));
}

}  // namespace drun::transport
