// Forwards one output stream of one worker to drun. Reads only as much as drun has given credit for, so that a slow
// reader slows the worker and no buffer grows.
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
  // A line (a prompt, a progress bar) counts as unfinished after this long without its end.
  static constexpr auto kUnfinished = std::chrono::milliseconds(200);

  // More than a terminal's buffers hold in any kernel (about 20 KiB today). After the worker's end a terminal is read
  // until it is empty, which the kernel reports only after all data in flight has arrived, or up to this many bytes
  // if a descendant goes on writing.
  static constexpr int kTerminalHolds = 64 << 10;

  // Calls `emit` with each chunk, and with an empty chunk when the stream stops in an unfinished line: only here is
  // it known whether the worker or the path to drun is slow. Calls `ended` once, after the last chunk. Both on the
  // I/O thread.
  OutputPump(asio::io_context& io, Fd fd, std::size_t credit, std::function<void(std::string)> emit,
             std::function<void()> ended);
  Task<void> run();
  void add_credit(std::size_t n_bytes);
  // The worker has ended: data that is in the pipe or the terminal now is still read, but a descendant that keeps it
  // open is not waited for.
  void finish_soon();
  // No effect if the stream is not a terminal or has ended.
  void resize_terminal(TerminalSize size);
  bool ended() const { return done_; }

 private:
  bool read_available();
  void send(std::string chunk);
  void note_line(std::string_view chunk);
  Task<void> wait_readable();

  asio::posix::stream_descriptor stream_;
  std::size_t credit_;  // each chunk costs its control::output_charge
  std::function<void(std::string)> emit_;
  std::function<void()> ended_;
  Event wake_;
  Deadline unfinished_at_ = Deadline::max();  // when the current line counts as unfinished
  bool finishing_ = false;
  int finish_left_ = 0;  // max bytes left from before the worker's end
  bool done_ = false;
};

}  // namespace drun::agent
