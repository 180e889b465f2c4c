// Writes texts to one descriptor, in order, on a thread of its own: a terminal that is stopped (Ctrl-S), a reader that
// sleeps or a file system that hangs must not stop the I/O thread, whose heartbeats keep the agents alive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/fd.h"

namespace drun::launcher {

class BackgroundWriter {
 public:
  explicit BackgroundWriter(int fd);                                   // borrows `fd`; any number of texts may wait
  explicit BackgroundWriter(Fd fd, std::size_t max_bytes = SIZE_MAX);  // `max_bytes`: of texts that wait
  ~BackgroundWriter();  // returns when all is written, or the reader is gone; at once after leave()
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Any thread may call these.
  bool push(std::string text);  // false: more would wait than may; nothing was added
  // Waits until all that was pushed before is written, or could not be, at most for `limit`.
  bool wait(std::chrono::milliseconds limit);
  // The first one. Texts after it are still tried.
  std::optional<Error> error() const;

  // These two are the last call. The thread closes its own descriptor: that may take as long as a write, and fail as
  // one. Writes what waits and closes, at most for `limit`; then leave(). The first error of all; Errc::kTimeout.
  Result<void> close(std::chrono::milliseconds limit);
  // Drops what waits. The thread ends by itself, as soon as its file system or the reader lets it.
  void leave();

 private:
  struct State;
  BackgroundWriter(std::shared_ptr<State> state);
  static void run(State& state);
  void end();

  std::shared_ptr<State> state_;  // the thread may outlive this object
  std::thread thread_;
};

}  // namespace drun::launcher
