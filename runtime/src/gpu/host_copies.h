// Device memory that a call is given, as memory of the host for as long as the call lasts: the way of collectives on
// GPUs through the CPU path. docs/gpu.md.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/call_options.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/pinned.h"
#include "runtime/src/gpu/stream_wait.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// Of one call, in its turn. Memory of the host is left as it is, at no cost where no driver is loaded.
class HostCopies {
 public:
  // All three outlive it.
  HostCopies(const Operation& operation, const CallOptions& options, PinnedMemory& pinned)
      : operation_(operation), options_(options), pinned_(pinned) {
    if (options.memory != DRUN_MEMORY_HOST) driver_ = loaded_driver();
  }
  ~HostCopies() {
    if (context_.is_entered()) release();
  }
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // What the call writes, which it need not read; first, so that memory in place is one with it. `keeps`: not all of it
  // is overwritten.
  Status writes(void*& memory, std::size_t n_bytes, bool keeps = false) {
    if (driver_ == nullptr || n_bytes == 0 || memory == nullptr) return {};
    return copy_written(memory, n_bytes, keeps);
  }
  // What the call reads, after all work that `options.stream` has got.
  Status reads(const void*& memory, std::size_t n_bytes) {
    if (driver_ == nullptr || n_bytes == 0 || memory == nullptr) return {};
    return copy_read(memory, n_bytes);
  }
  // Once the call is over, and has gone well: what it has written goes to the device.
  Status finish() {
    if (regions_.empty()) return {};
    return copy_back();
  }

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
  Status wait();  // for the stream, until the call's deadline
  tl::unexpected<Failure> failed(const char* function, DriverResult error) const;

  const Operation& operation_;
  const CallOptions& options_;
  PinnedMemory& pinned_;
  const Driver* driver_ = nullptr;
  ContextScope context_;
  std::vector<Region> regions_;
};

}  // namespace drun::runtime::gpu
