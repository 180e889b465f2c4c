#include "agent/guard_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <utility>

namespace drun::agent {

GuardWatch::GuardWatch(asio::io_context& io, GuardLink guard, std::function<void()> lost)
    : io_(io),
      guard_(std::move(guard)),
      in_(io),
      tasks_(io.get_executor()),
      wake_(io.get_executor()),
      lost_(std::move(lost)) {
  set_nonblocking(guard_.from_guard.get(), true);
  set_nonblocking(guard_.to_guard.get(), true);
  in_.assign(::fcntl(guard_.from_guard.get(), F_DUPFD_CLOEXEC, 3));
}

void GuardWatch::start() {
  tasks_.spawn(send_heartbeats());
  tasks_.spawn(watch());
}

bool GuardWatch::beat() { return ::write(guard_.to_guard.get(), ".", 1) >= 0 || errno != EPIPE; }

Task<void> GuardWatch::send_heartbeats() {
  while (!is_stopped_) {
    if (!beat()) break;
    co_await wake_.wait_until(Clock::now() + std::chrono::seconds(1));
  }
}

Task<void> GuardWatch::watch() {
  // The guard answers each of our bytes. Its silence is counted in seconds in which we ran, because both may have
  // been frozen.
  char bytes[64];
  int silent_seconds = 0;
  while (!is_stopped_) {
    const auto buffer = asio::buffer(bytes);
    DeadlineGuard second(io_.get_executor(), Clock::now() + std::chrono::seconds(1), [this] {
      boost::system::error_code ignored;
      in_.cancel(ignored);
    });
    const auto [ec, n] = co_await in_.async_read_some(buffer, as_result);
    if (is_stopped_) break;
    if (!ec) {
      silent_seconds = 0;
      continue;
    }
    if (second.fired() && ec == asio::error::operation_aborted && ++silent_seconds < kGuardSilenceLimit) continue;
    if (silent_seconds == kGuardSilenceLimit) signal_guard(SIGKILL);
    lost_();
    break;
  }
}

// Never by its number alone, which another process may have by now: without a pidfd, only while it is our parent.
void GuardWatch::signal_guard(int signal) {
  if (guard_.guard_process) {
    ::syscall(SYS_pidfd_send_signal, guard_.guard_process.get(), signal, nullptr, 0);
  } else if (::getppid() == guard_.guard_pid) {
    ::kill(guard_.guard_pid, signal);
  }
}

void GuardWatch::stop() {
  is_stopped_ = true;
  signal_guard(SIGCONT);  // one that was stopped for less than the limit would be left over
  boost::system::error_code ignored;
  in_.close(ignored);
  wake_.notify();
}

}  // namespace drun::agent
