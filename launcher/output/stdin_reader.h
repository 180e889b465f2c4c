// Reads drun's own standard input, only as fast as the workers take it. Never changes the flags of a descriptor that is
// shared with other programs, and never reads the terminal from the background.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::launcher {

class StdinReader {
 public:
  using OnBytes = std::function<void(std::string)>;
  // `credit`: bytes that may be in flight at the start. `ended` is called at EOF.
  StdinReader(asio::io_context& io, std::size_t credit, OnBytes bytes, std::function<void()> ended);
  Task<void> run();
  void add_credit(std::size_t n_bytes);
  void stop();

 private:
  Task<bool> wait_readable();
  Task<void> pause(std::chrono::milliseconds time);
  // Does not wait if another program has taken the bytes for which wait_readable() returned, as far as the kind of
  // descriptor allows.
  long read_some(char* out, std::size_t n) const;

  asio::posix::stream_descriptor epoll_;  // an epoll instance that holds fd 0: waiting on it does not change fd 0
  bool pollable_ = false;
  Fd own_;  // fd 0 opened anew, if it is a pipe or a terminal
  std::size_t credit_;
  OnBytes bytes_;
  std::function<void()> ended_;
  Event wake_;
  bool stopping_ = false;
};

}  // namespace drun::launcher
