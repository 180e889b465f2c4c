// drun's standard input on its way into one worker. Gives credit back as the worker reads, and says so when it never
// will again.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <string>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::agent {

class StdinPump {
 public:
  // `consumed` gets the bytes that the pipe took; `refused` is called once if the worker closes its end.
  StdinPump(asio::io_context& io, Fd fd, bool is_pty, std::function<void(std::size_t)> consumed,
            std::function<void()> refused);
  Task<void> run();
  void deliver(std::string bytes);
  void end();    // EOF after what was delivered
  void close();  // now

 private:
  asio::posix::stream_descriptor stream_;
  bool is_pty_;
  std::function<void(std::size_t)> consumed_;
  std::function<void()> refused_;
  std::deque<std::string> queue_;
  Event wake_;
  bool ended_ = false;
};

}  // namespace drun::agent
