// Watches the calls of NCCL and of the driver that a communicator makes. They rarely block: a setup, and the first call
// of a communicator, wait in NCCL for all members, and a stream's queue may be full. Their caller has the turn
// meanwhile, and can't look at the job.
#pragma once

#include <chrono>
#include <mutex>

#include "runtime/src/backend/failure_attribution.h"
#include "runtime/src/gpu/hang_guard.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// While a call is blocked, the guard thread publishes for whom it waits. It ends the process, with an error that names
// the rank at fault, if the job or another rank has failed, or at the deadline of the operation. (NCCL can't cancel a
// call that is blocked.) Owned by the communicator of `group`.
class CallWatch final : private Watchdog {
 public:
  CallWatch(const JobContext& job_context, const Group& group) : job_context_(job_context), group_(group) { begin(); }
  ~CallWatch() override { end(); }

  // A call, from construction to destruction. The thread must not use JobContext::client meanwhile. `function` is named
  // in errors. Calls are not nested.
  class Call {
   public:
    Call(CallWatch& watch, const Operation& operation, const char* function) : watch_(watch) {
      const std::lock_guard<std::mutex> lock(watch_.mutex_);
      watch_.operation_ = &operation;
      watch_.function_ = function;
      watch_.blocked_ = {};
    }
    ~Call() { watch_.leave(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallWatch& watch_;
  };

 private:
  void leave();
  void poll(std::chrono::nanoseconds passed) override;
  [[noreturn]] void fail(const Failure& failure) const;

  const JobContext& job_context_;
  const Group& group_;
  std::mutex mutex_;  // held during a poll: then the caller can't go on, and use JobContext
  const Operation* operation_ = nullptr;
  const char* function_ = nullptr;
  std::chrono::nanoseconds blocked_{};  // as far as polls have seen
  std::chrono::nanoseconds asked_{};    // value of blocked_ when other ranks' failures were asked for
  Clock::duration stopped_{};           // JobContext::stopped() at the first poll of the call
  WaitNote note_;
};

}  // namespace drun::runtime::gpu
