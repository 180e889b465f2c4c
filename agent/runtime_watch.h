// Warns of libraries that make each worker a job of its own: an MPI program, TensorFlow. A Python program's libraries
// are known once it has imported them, so the workers' processes are polled a few times after the start. Owned by the
// agent; runs on its thread. Sends one warning at most.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/forked_call.h"
#include "agent/worker_group.h"
#include "base/asio.h"
#include "control/frame_queue.h"

namespace drun::agent {

class RuntimeWatch {
 public:
  // `workers` must outlive this.
  RuntimeWatch(asio::io_context& io, control::FrameQueue& to_drun, const WorkerGroup& workers);
  void start();
  // Called by the agent's reaper for every pid.
  void reaped(pid_t pid) { reads_.reaped(pid); }
  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> watch();
  std::vector<pid_t> executed_workers() const;

  control::FrameQueue& to_drun_;
  const WorkerGroup& workers_;
  ForkedCalls reads_;  // /proc/PID/maps may not be read while a thread of the process is stuck in the kernel
  TaskGroup tasks_;
  Event wake_;
  bool is_stopped_ = false;
};

}  // namespace drun::agent
