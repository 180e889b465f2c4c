// One output stream of one worker on its way to drun. Reads only as much as drun has given credit for, so that a slow
// reader slows the worker and nothing grows.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::agent {

class OutputPump {
 public:
  // `emit` gets each chunk; `ended` once, after the last one. Both on the I/O thread.
  OutputPump(asio::io_context& io, Fd fd, std::size_t credit, std::function<void(std::string)> emit,
             std::function<void()> ended);
  Task<void> run();
  void add_credit(std::size_t n_bytes);
  // The worker has ended: what is in the pipe now still comes, but a descendant that keeps it open is not waited for.
  void finish_soon();
  bool ended() const { return done_; }

 private:
  bool read_available();

  asio::posix::stream_descriptor stream_;
  std::size_t credit_;
  std::function<void(std::string)> emit_;
  std::function<void()> ended_;
  Event wake_;
  bool finishing_ = false;
  int finish_left_ = 0;  // bytes that were in the pipe when the worker ended
  bool done_ = false;
};

}  // namespace drun::agent
