// Writes drun's own messages to stderr, in order, on a thread of its own: a terminal that is stopped (Ctrl-S) or a
// reader that sleeps must not stop the I/O thread, whose heartbeats keep the agents alive.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "base/asio.h"
#include "launcher/output/output_sink.h"

namespace drun::cli {

class MessageWriter {
 public:
  explicit MessageWriter(int fd) : sink_(fd) {}  // borrows `fd`
  ~MessageWriter() { thread_.join(); }           // returns when all is written, or the reader is gone
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;

  void push(std::string text);
  // Waits until all that was pushed before is written, at most for `limit`. Any thread may call it.
  bool wait(std::chrono::milliseconds limit);

 private:
  launcher::OutputSink sink_;
  const launcher::ReaderTimeout no_limit_;
  std::atomic<std::size_t> n_waiting_{0};
  asio::thread_pool thread_{1};
};

}  // namespace drun::cli
