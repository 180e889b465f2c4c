// Forwards drun's standard input to one worker. Returns credit as the worker's pipe takes bytes, reports that a slow
// worker still reads, and reports when the worker will never read again.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::agent {

class StdinPump {
 public:
  // Poll interval for what the worker has read while the pipe is full. Also the minimum time between credits for one
  // delivery: credit for smaller parts would make drun send small parts.
  static constexpr auto kPollInterval = std::chrono::milliseconds(500);

  // Calls `consumed` with the number of bytes that the pipe took, or with 0 if it took none but the worker has read
  // some: a pipe has room again only after a whole page of it was read. Calls `refused` once if the worker closes its
  // end.
  StdinPump(asio::io_context& io, Fd fd, bool is_pty, std::function<void(std::size_t)> consumed,
            std::function<void()> refused);
  Task<void> run();
  void deliver(std::string bytes);
  void end();    // EOF after the delivered bytes
  void close();  // at once

 private:
  enum class Outcome { kWritten, kRefused, kClosed };
  Task<Outcome> write(const std::string& bytes);
  bool worker_has_read();

  asio::posix::stream_descriptor stream_;
  bool is_pty_;
  bool in_line_ = false;  // what was delivered does not end with a line's end
  std::function<void(std::size_t)> consumed_;
  std::function<void()> refused_;
  std::deque<std::string> queue_;
  Event wake_;
  bool ended_ = false;
  std::uint64_t written_ = 0;    // total bytes written to the pipe
  std::uint64_t seen_read_ = 0;  // bytes that the worker had read at the last poll
};

}  // namespace drun::agent
