#include "launcher/output/background_writer.h"

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/blocked_signals.h"
#include "launcher/output/output_sink.h"

namespace drun::launcher {

struct BackgroundWriter::State {
  explicit State(int fd) : sink(fd) {}
  State(Fd fd, std::size_t limit) : own(std::move(fd)), sink(own.get()), max_bytes(limit) {}

  Fd own;
  OutputSink sink;
  const std::size_t max_bytes = SIZE_MAX;
  ReaderTimeout reader_timeout;

  std::mutex mutex;  // of all below
  std::condition_variable changed;
  std::deque<std::string> waiting;         // each is one write, which others of the same pipe can't tear if it is short
  std::uint64_t n_pushed = 0, n_done = 0;  // bytes
  std::optional<Error> error;
  bool ending = false, closed = false;
};

BackgroundWriter::BackgroundWriter(std::shared_ptr<State> state) : state_(std::move(state)) {
  const BlockedSignals of_thread;  // they are for the I/O thread; a reader that is gone is an error of the write
  thread_ = std::thread([state = state_] { run(*state); });
}

BackgroundWriter::BackgroundWriter(int fd) : BackgroundWriter(std::make_shared<State>(fd)) {}

BackgroundWriter::BackgroundWriter(Fd fd, std::size_t max_bytes)
    : BackgroundWriter(std::make_shared<State>(std::move(fd), max_bytes)) {}

BackgroundWriter::~BackgroundWriter() {
  if (!thread_.joinable()) return;
  end();
  thread_.join();
}

void BackgroundWriter::end() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
}

Result<void> BackgroundWriter::close(std::chrono::milliseconds limit) {
  end();
  std::unique_lock lock(state_->mutex);
  const bool in_time = state_->changed.wait_for(lock, limit, [&] { return state_->closed; });
  const auto error = state_->error;
  lock.unlock();
  if (in_time) {
    thread_.join();
  } else {
    leave();
  }
  if (error) return fail(*error);
  if (!in_time) return fail(Errc::kTimeout, "write", "its reader or file system is too slow");
  return {};
}

void BackgroundWriter::leave() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.clear();
  }
  state_->reader_timeout.set(0);
  end();
  thread_.detach();
}

bool BackgroundWriter::push(std::string text) {
  {
    const std::lock_guard lock(state_->mutex);
    if (text.size() > state_->max_bytes - (state_->n_pushed - state_->n_done)) return false;
    state_->n_pushed += text.size();
    state_->waiting.push_back(std::move(text));
  }
  state_->changed.notify_all();
  return true;
}

bool BackgroundWriter::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  const std::uint64_t all = state_->n_pushed;
  return state_->changed.wait_for(lock, limit, [&] { return state_->n_done >= all; });
}

std::optional<Error> BackgroundWriter::error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

void BackgroundWriter::run(State& state) {
  std::unique_lock lock(state.mutex);
  const auto note = [&state](Error error) {
    if (!state.error) state.error = std::move(error);
  };
  for (;;) {
    state.changed.wait(lock, [&] { return !state.waiting.empty() || state.ending; });
    if (state.waiting.empty()) break;
    const std::string text = std::move(state.waiting.front());
    state.waiting.pop_front();
    lock.unlock();
    auto written = state.sink.write(text, state.reader_timeout);
    lock.lock();
    if (!written) note(std::move(written.error()));
    state.n_done += text.size();
    state.changed.notify_all();
  }
  lock.unlock();
  const bool is_good = !state.own || ::close(state.own.release()) == 0;
  const int close_error = errno;
  lock.lock();
  if (!is_good) note(errno_error(close_error, "close"));
  state.closed = true;
  state.changed.notify_all();
}

}  // namespace drun::launcher
