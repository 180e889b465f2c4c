// The agent's end of the control channel: sends what is in its queue and heartbeats, answers pings, and calls a
// handler for each other frame that arrives. Owned by the agent; runs on its thread.
//
// States: open -> lost -> stopped, or open -> stopped. It is lost at EOF, at an error, at a frame that is not valid or
// has no handler, and when drun is silent for too long. From then on nothing is sent, and `lost` has been called once.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string_view>

#include "base/asio.h"
#include "control/frame_queue.h"
#include "control/frames.h"
#include "control/messages.h"

namespace drun::agent {

class ControlChannel {
 public:
  // Takes ownership of the descriptors.
  ControlChannel(asio::io_context& io, int from_drun, int to_drun, std::function<void()> lost);

  // Sets the handler of a type of frame. A body that can't be decoded loses the channel.
  template <typename Message>
  void on(control::Type type, std::function<void(Message)> handler) {
    handlers_[type] = [handler = std::move(handler)](std::string_view body) {
      auto message = control::decode<Message>(body);
      if (message) handler(std::move(*message));
      return message.has_value();
    };
  }
  // The same for frames whose body is not read.
  void on(control::Type type, std::function<void()> handler);

  // Starts to read, write and send heartbeats. All handlers must be set.
  void start();
  // `interval`: of our heartbeats. `timeout`: silence after which drun counts as gone.
  void set_heartbeat(std::chrono::milliseconds interval, std::chrono::milliseconds timeout);
  // While it is set, drun may be silent: it is about to be stopped by Ctrl-Z.
  void set_paused(bool is_paused) { is_paused_ = is_paused; }
  // Frames to drun. Closed once the channel is lost.
  control::FrameQueue& outgoing() { return outgoing_; }

  void stop();  // reads no more; what is queued is still sent
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> read();
  Task<void> write();
  Task<void> beat();
  void handle(const control::Frame& frame);
  void lose();

  asio::posix::stream_descriptor in_, out_;
  TaskGroup tasks_;
  control::FrameQueue outgoing_;
  Event beat_wake_;
  std::function<void()> lost_;
  std::map<control::Type, std::function<bool(std::string_view)>> handlers_;  // false: not valid
  std::chrono::milliseconds interval_{5000}, timeout_{30000};
  Deadline last_heard_;
  bool is_open_ = true;
  bool is_stopped_ = false;
  bool is_paused_ = false;
};

}  // namespace drun::agent
