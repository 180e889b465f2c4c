// Warns of libraries that make each worker a job of its own: an MPI program, TensorFlow. A Python program's libraries
// are known once it has imported them, so the workers' processes are polled a few times after the start. Owned by the
// agent; runs on its thread. Sends one warning at most.
#pragma once

#include <chrono>
#include <string>

#include "agent/rank_snapshot.h"
#include "agent/worker_group.h"
#include "base/asio.h"
#include "control/frame_queue.h"

namespace drun::agent {

class RuntimeWatch {
 public:
  // `workers` must outlive this.
  RuntimeWatch(const asio::any_io_executor& executor, control::FrameQueue& to_drun, const WorkerGroup& workers);
  void start();
  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> watch();
  std::string poll(bool settled) const;

  control::FrameQueue& to_drun_;
  const WorkerGroup& workers_;
  TaskGroup tasks_;
  Event wake_;
  bool is_stopped_ = false;
};

}  // namespace drun::agent
