// Coroutines on Boost.Asio, the way drun uses them: one io_context, one I/O thread, cancel by close.
//
// Code that need not be a template is in asio.cpp: each instantiation of a timer's wait or of co_spawn costs seconds.
//
// The rule for GCC 12: no braced temporary that owns memory and no lambda in a statement with co_await. Name the
// object on the line before and move it.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace drun {

namespace asio = boost::asio;
using Timer = asio::basic_waitable_timer<Clock>;
template <typename T>
using Task = asio::awaitable<T>;

// Completion token: co_await op(..., as_result) yields a tuple (error_code, values...).
inline constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

// `ec` as an Error about `what`: kCanceled, kClosed, or the system's error.
Error asio_error(const boost::system::error_code& ec, const std::string& what);

// A condition that coroutines of one thread wait for. `notify` is sticky until the next `reset` or auto-reset wait.
class Event {
 public:
  explicit Event(asio::any_io_executor executor);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void notify();
  void reset() { set_ = false; }
  bool is_set() const { return set_; }
  // Waits until notified; leaves it set.
  Task<void> wait();
  // Waits until notified, then resets: each notify wakes a single pass of a work loop.
  Task<void> wait_and_reset();
  // False if the deadline passed first. All waiters of one Event must agree on the deadline at a time.
  Task<bool> wait_until(Deadline deadline);

 private:
  Timer timer_;
  bool set_ = false;
};

// Runs `action` (typically a close) when the deadline passes; disarmed by its destructor.
class DeadlineGuard {
 public:
  DeadlineGuard(const asio::any_io_executor& executor, Deadline deadline, std::function<void()> action);
  ~DeadlineGuard();
  DeadlineGuard(const DeadlineGuard&) = delete;
  DeadlineGuard& operator=(const DeadlineGuard&) = delete;
  bool fired() const { return state_->fired; }

 private:
  struct State {
    std::function<void()> action;
    bool fired = false;
    bool disarmed = false;
  };
  Timer timer_;
  std::shared_ptr<State> state_;
};

Task<void> sleep_until(Deadline deadline);

template <typename F>
Task<std::invoke_result_t<F>> call_as_coroutine(F f) {
  co_return f();
}

// Runs a blocking `f` on the helper pool; the caller resumes on its own thread. The result must be
// default-constructible.
template <typename F>
Task<std::invoke_result_t<F>> run_blocking(asio::thread_pool& pool, F f) {
  auto task = call_as_coroutine(std::move(f));
  co_return co_await asio::co_spawn(pool, std::move(task), asio::use_awaitable);
}

// Spawned coroutines with an owner: `join` waits for all of them. An exception is a bug: it ends the
// process, with its text. Owned by the object whose coroutines it holds; that object must outlive join().
class TaskGroup {
 public:
  explicit TaskGroup(asio::any_io_executor executor);
  void spawn(Task<void> task);
  Task<void> join() { return idle_.wait(); }
  int running() const { return running_; }

 private:
  asio::any_io_executor executor_;
  Event idle_;
  int running_ = 0;
};

// Runs the task, and everything that it starts, on the calling thread. From then on SIGPIPE is ignored in this process,
// and its soft limit of open files is the hard one.
void run_on_loop(asio::io_context& io, Task<void> task);

}  // namespace drun
