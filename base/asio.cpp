#include "base/asio.h"

#include <signal.h>

#include "base/fd.h"

namespace drun {

Error asio_error(const boost::system::error_code& ec, const std::string& what) {
  if (ec == asio::error::operation_aborted) return Error(Errc::kCanceled, what + ": canceled");
  if (ec == asio::error::eof) return Error(Errc::kClosed, what + ": closed by the other side");
  return errno_error(ec.value(), what);
}

Event::Event(asio::any_io_executor executor) : timer_(executor) { timer_.expires_at(Deadline::max()); }

Event::~Event() = default;

void Event::notify() {
  set_ = true;
  timer_.cancel();
}

Task<void> Event::wait() {
  while (!set_) co_await timer_.async_wait(as_result);
}

Task<void> Event::wait_and_reset() {
  while (!set_) co_await timer_.async_wait(as_result);
  set_ = false;
}

Task<bool> Event::wait_until(Deadline deadline) {
  while (!set_) {
    if (Clock::now() >= deadline) co_return false;
    timer_.expires_at(deadline);
    co_await timer_.async_wait(as_result);
    timer_.expires_at(Deadline::max());
  }
  co_return true;
}

DeadlineGuard::DeadlineGuard(const asio::any_io_executor& executor, Deadline deadline, std::function<void()> action)
    : timer_(executor), state_(std::make_shared<State>()) {
  state_->action = std::move(action);
  timer_.expires_at(deadline);
  timer_.async_wait([state = state_](const boost::system::error_code& ec) {
    if (ec || state->disarmed) return;
    state->fired = true;
    state->action();
  });
}

DeadlineGuard::~DeadlineGuard() {
  state_->disarmed = true;
  state_->action = nullptr;
}

Task<void> sleep_until(Deadline deadline) {
  Timer timer(co_await asio::this_coro::executor);
  timer.expires_at(deadline);
  co_await timer.async_wait(as_result);
}

TaskGroup::TaskGroup(asio::any_io_executor executor) : executor_(executor), idle_(executor) { idle_.notify(); }

void TaskGroup::spawn(Task<void> task) {
  ++running_;
  idle_.reset();
  asio::co_spawn(executor_, std::move(task), [this](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    if (--running_ == 0) idle_.notify();
  });
}

void run_on_loop(asio::io_context& io, Task<void> task) {
  ::signal(SIGPIPE, SIG_IGN);
  raise_open_file_limit();
  TaskGroup top(io.get_executor());
  top.spawn(std::move(task));
  io.run();
}

}  // namespace drun
