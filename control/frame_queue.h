// Frames to send on a control channel, urgent ones first. Owned by the sending side; one thread.
//
// States: open -> finished (finish(): queued frames are still sent) or closed (close(): queued and later frames are
// dropped).
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
  void push_bytes(std::string bytes);                // not a frame, e.g. the magic; urgent
  // For the writer: waits for the next frames, several if they are small: each write wakes sshd and then drun, which
  // costs more than the frame. The next call means that they are written. Nothing: finished or closed.
  Task<std::optional<std::string>> next();
  // Waits until everything pushed is written, the queue is closed, or the deadline passes.
  Task<void> flush(Deadline deadline);
  // Bytes that the writer has not yet taken.
  std::size_t bulk_bytes() const { return bulk_bytes_; }
  std::size_t urgent_bytes() const { return urgent_bytes_; }
  bool is_closed() const { return closed_; }
  bool flushed() const { return closed_ || taken_.is_set(); }
  void finish();
  void close();  // idempotent

 private:
  std::string take();
  std::size_t& bytes_of(const std::deque<std::string>& queue) { return &queue == &bulk_ ? bulk_bytes_ : urgent_bytes_; }
  void add(std::deque<std::string>& queue, std::string bytes);

  std::deque<std::string> urgent_, bulk_;
  Event wake_, taken_;
  std::size_t bulk_bytes_ = 0, urgent_bytes_ = 0;
  bool finished_ = false;
  bool closed_ = false;
};

}  // namespace drun::control
