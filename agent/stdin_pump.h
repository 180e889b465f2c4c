// drun's standard input on its way into one worker. Gives credit back as the worker's pipe takes bytes, shows that a
// slow worker reads, and says so when it never will again.
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
  // While the pipe does not take all that is there, it is looked so often for what the worker has read. Credit for
  // smaller parts would come back in small parts, and drun would send small ones.
  static constexpr auto kLook = std::chrono::milliseconds(500);

  // `consumed` gets the number of bytes that the pipe took, or 0 where it took none but the worker has read some: a
  // pipe has room again only when a whole page of it was read. `refused` is called once if the worker closes its end.
  StdinPump(asio::io_context& io, Fd fd, bool is_pty, std::function<void(std::size_t)> consumed,
            std::function<void()> refused);
  Task<void> run();
  void deliver(std::string bytes);
  void end();    // EOF after what was delivered
  void close();  // now

 private:
  enum class Outcome { kWritten, kRefused, kClosed };
  Task<Outcome> write(const std::string& bytes);
  bool worker_has_read();

  asio::posix::stream_descriptor stream_;
  bool is_pty_;
  std::function<void(std::size_t)> consumed_;
  std::function<void()> refused_;
  std::deque<std::string> queue_;
  Event wake_;
  bool ended_ = false;
  std::uint64_t written_ = 0;    // into the pipe, in all
  std::uint64_t seen_read_ = 0;  // how much of it the worker had read at the last look
};

}  // namespace drun::agent
