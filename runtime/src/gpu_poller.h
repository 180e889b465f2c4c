// The GPU thread (drun-gpu) of a process: polls the calls under way on GPUs, whatever the program does.
// docs/threads.md, "The GPU thread".
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace drun::runtime {

// Owned by the RuntimeState. Must never be destroyed once it has begun: the thread is detached.
class GpuPoller {
 public:
  // Interval of the polls.
  static constexpr std::chrono::milliseconds kInterval{50};

  // The thread calls `poll`, which must not throw.
  explicit GpuPoller(std::function<void()> poll) : poll_(std::move(poll)) {}
  // Starts the thread, unless this process has it. One thread at a time.
  void begin();
  // Waits for a poll in progress; no poll begins after that. Must be called when the process ends, and the driver with
  // it. Does nothing in a forked child, which has no thread.
  void stop();
  // Time for which this process was stopped (Ctrl-Z), in nanoseconds, as the thread has measured it.
  std::shared_ptr<const std::atomic<std::int64_t>> stopped_ns() const { return stopped_ns_; }

 private:
  void run();

  const std::function<void()> poll_;
  pid_t process_ = -1;  // process of the thread; a forked child has none
  std::mutex polling_;  // held by the thread while it polls
  bool is_over_ = false;
  const std::shared_ptr<std::atomic<std::int64_t>> stopped_ns_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace drun::runtime
