// One output stream of one worker on its way to drun. Reads only as much as drun has given credit for, so that a slow
// reader slows the worker and nothing grows.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/asio.h"
#include "base/fd.h"
#include "base/terminal.h"

namespace drun::agent {

class OutputPump {
 public:
  // An unfinished line (a prompt, a progress bar) counts as such after this long without its end.
  static constexpr auto kUnfinished = std::chrono::milliseconds(200);

  // More than a terminal's buffers take in any kernel (about 20 KiB today). It is read until it is empty, which the
  // kernel says only after all that is on the way has arrived, or so far where a descendant goes on writing.
  static constexpr int kTerminalHolds = 64 << 10;

  // `emit` gets each chunk, and an empty one where the stream stands in an unfinished line: only here is it known
  // whether the worker is slow or the way to drun. `ended` is called once, after the last one. Both on the I/O thread.
  OutputPump(asio::io_context& io, Fd fd, std::size_t credit, std::function<void(std::string)> emit,
             std::function<void()> ended);
  Task<void> run();
  void add_credit(std::size_t n_bytes);
  // The worker has ended: what is in the pipe or the terminal now still comes, but a descendant that keeps it open is
  // not waited for.
  void finish_soon();
  // If it reads a terminal, until that ends.
  void resize_terminal(TerminalSize size);
  bool ended() const { return done_; }

 private:
  bool read_available();
  void send(std::string chunk);
  void note_line(std::string_view chunk);
  Task<void> wait_readable();

  asio::posix::stream_descriptor stream_;
  std::size_t credit_;  // control::output_charge of each chunk is taken from it
  std::function<void(std::string)> emit_;
  std::function<void()> ended_;
  Event wake_;
  Deadline unfinished_at_ = Deadline::max();  // when the line in which the stream stands counts as unfinished
  bool finishing_ = false;
  int finish_left_ = 0;  // bytes that may be of the time before the worker ended
  bool done_ = false;
};

}  // namespace drun::agent
