// Presents device memory as memory of the host for the duration of a call: the route of collectives on GPUs that are
// staged through the host. docs/gpu.md.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/src/call_deadline.h"
#include "runtime/src/call_options.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/pinned.h"
#include "runtime/src/gpu/stream_wait.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// The copies of one call. Memory of the host is left as it is, at no cost if no driver is loaded.
class HostCopies {
 public:
  // Returns the failure of another call or of the job, after which waiting for this call is useless. Called
  // periodically during a wait for a stream.
  using CheckJob = std::function<Status(const Operation&)>;
  // All but `check_job` must outlive it.
  HostCopies(const Operation& operation, const CallOptions& options, PinnedMemory& pinned, CallDeadline& call_deadline,
             CheckJob check_job)
      : operation_(operation),
        options_(options),
        pinned_(pinned),
        call_deadline_(call_deadline),
        check_job_(std::move(check_job)) {
    if (options.memory != DRUN_MEMORY_HOST) driver_ = loaded_driver();
  }
  ~HostCopies() {
    if (context_.is_entered()) release();
  }
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Replaces memory that the call writes by memory of the host, which is not initialized. Call it before reads(), so
  // that memory in place is copied once. `keeps`: the call does not overwrite all of it.
  Status writes(void*& memory, std::size_t n_bytes, bool keeps = false) {
    if (driver_ == nullptr || n_bytes == 0 || memory == nullptr) return {};
    return copy_written(memory, n_bytes, keeps);
  }
  // Replaces memory that the call reads by a copy on the host, made after the work already enqueued on
  // `options.stream`.
  Status reads(const void*& memory, std::size_t n_bytes) {
    if (driver_ == nullptr || n_bytes == 0 || memory == nullptr) return {};
    return copy_read(memory, n_bytes);
  }
  // Call it after the call has succeeded: copies what the call has written to the device.
  Status finish() {
    if (regions_.empty()) return {};
    return copy_back();
  }
  // True if one of the above returned a failure of check_job(), which must not be attributed to this rank.
  bool is_interrupted() const { return is_interrupted_; }

 private:
  struct Region {
    DevicePointer device;
    char* host;
    std::size_t n_bytes;
    bool written;
  };
  Status copy_written(void*& memory, std::size_t n_bytes, bool keeps);
  Status copy_read(const void*& memory, std::size_t n_bytes);
  Status copy_back();
  void release();
  bool is_device(const void* memory) const {
    return options_.memory == DRUN_MEMORY_DEVICE || is_device_memory(*driver_, memory);
  }
  Outcome<char*> add(DevicePointer device, std::size_t n_bytes, bool written);
  Status fetch(char* to, DevicePointer from, std::size_t n_bytes);
  Status started(const char* function, DriverResult error);  // a copy
  Status wait();  // for the stream, until the call's deadline or a failure of check_job()
  tl::unexpected<Failure> failed(const char* function, DriverResult error) const;

  const Operation& operation_;
  const CallOptions& options_;
  PinnedMemory& pinned_;
  CallDeadline& call_deadline_;
  const CheckJob check_job_;
  bool is_interrupted_ = false;
  bool is_copying_ = false;  // the stream may still have copies from or to our memory
  const Driver* driver_ = nullptr;
  ContextScope context_;
  std::vector<Region> regions_;
};

}  // namespace drun::runtime::gpu
