// Sends drun what the flight recorders of this host's workers say: their progress, on request and at their ends, and
// all calls for --timeline (docs/recorder.md). Owned by the agent; runs on its thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "agent/recorders.h"
#include "agent/worker_group.h"
#include "base/asio.h"
#include "control/frame_queue.h"
#include "control/messages.h"

namespace drun::agent {

class RecorderFeed {
 public:
  // `workers` must outlive this.
  RecorderFeed(const asio::any_io_executor& executor, control::FrameQueue& to_drun, const WorkerGroup& workers);

  // Applies the settings. Starts the timeline if they ask for it. Ignored once there are workers.
  void configure(const control::Record& settings);
  Recorders& recorders() { return recorders_; }

  void send_activity();                // of all ranks
  void send_last(std::uint32_t rank);  // its activity and its last calls: it has ended
  void send_end();                     // the end of the timeline, if there is one: all ranks have ended

  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> send_timeline();
  void send_new_calls_of(std::uint32_t rank, bool all);

  control::FrameQueue& to_drun_;
  const WorkerGroup& workers_;
  TaskGroup tasks_;
  Event wake_;
  Recorders recorders_;
  std::chrono::milliseconds interval_{0};  // 0: no timeline requested
  bool is_stopped_ = false;
};

}  // namespace drun::agent
