// Frames on their way to the other side of a control channel, urgent ones first. Owned by that side; one thread.
//
// States: open -> finished (finish: what is in it is still taken) or closed (close: it is dropped, and all that
// follows).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/asio.h"
#include "control/frames.h"

namespace drun::control {

class FrameQueue {
 public:
  explicit FrameQueue(const asio::any_io_executor& executor) : wake_(executor), taken_(executor) {}
  void push(Type type, std::string_view body);       // urgent: goes before bulk
  void push_bulk(Type type, std::string_view body);  // output, stdin
  void push_bytes(std::string bytes);                // what is no frame; urgent
  // For the one who writes: the next, as soon as there is one. He comes back when it is written. Nothing: the end.
  Task<std::optional<std::string>> next();
  // Until everything that was pushed is written, or it is closed, or the deadline passes.
  Task<void> flush(Deadline deadline);
  std::size_t bulk_bytes() const { return bulk_bytes_; }  // that nobody has taken yet
  bool flushed() const { return closed_ || taken_.is_set(); }
  void finish();
  void close();  // idempotent

 private:
  void add(std::deque<std::string>& queue, std::string bytes);

  std::deque<std::string> urgent_, bulk_;
  Event wake_, taken_;
  std::size_t bulk_bytes_ = 0;
  bool finished_ = false;
  bool closed_ = false;
};

}  // namespace drun::control
