// One GPU as this process uses it: its context, a stream of ours, events. docs/gpu.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// "allreduce #3 'grad': cuEventRecord: CUDA_ERROR_INVALID_VALUE".
tl::unexpected<Failure> driver_failure(const Driver& driver, const std::string& during, const char* function,
                                       DriverResult error);

// The deadline of `operation` has passed, and no other rank is at fault.
tl::unexpected<Failure> own_gpu_timeout(const Operation& operation);

// Until the stream has nothing left to do, which is kSuccess; or it, or the driver, says what is bad; or `go_on`, which
// is asked ever again, says false: kNotReady.
DriverResult wait_for_stream(const Driver& driver, Stream stream, const std::function<bool()>& go_on);

// Whether the stream is being captured, or may not be touched as another is.
bool is_captured(const Driver& driver, Stream stream);

// Whether the processor can't touch it. What the driver does not know is memory of the host; so is what it manages, or
// has pinned.
bool is_device_memory(const Driver& driver, const void* memory);

// Whether memory of a device was mapped page by page (cuMemMap), as NCCL's allocator does it: not by cuMemAlloc.
bool is_mapped_memory(const Driver& driver, const void* memory);

// A context is current for as long as this lives, and then what was before.
class ContextScope {
 public:
  ContextScope() = default;
  ~ContextScope() { leave(); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  // Once. What cuCtxPushCurrent says.
  DriverResult enter(const Driver& driver, Context context);
  bool is_entered() const { return driver_ != nullptr; }
  void leave();

 private:
  const Driver* driver_ = nullptr;
};

// The primary context, which CUDA's runtime uses, of the device that the memory is on; or the one that it is of.
Outcome<Context> context_of(const Driver& driver, DevicePointer memory, const std::string& during);

// One thread at a time.
class Device {
 public:
  // What is under way goes on.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // The one that `memory` is on.
  static Outcome<std::unique_ptr<Device>> open(const Driver& driver, DevicePointer memory, const std::string& during);

  const Driver& driver() const { return driver_; }
  Context context() const { return context_; }
  Stream stream() const { return stream_; }
  const DeviceUuid& uuid() const { return uuid_; }
  int ordinal() const { return ordinal_; }
  // An event without timing, with the context current; or what cuEventCreate says.
  DriverResult take_event(Event& event);
  void give_back(Event event);
  // NCCL's calls on a device come one after the other, whatever streams and communicators they are on: kernels of two
  // that wait for other ranks could keep each other from running. The event at the end of the last one, which is not
  // used again before it is another's; nullptr: it has ended, or there was none.
  Event last_call() const { return is_last_over_ ? nullptr : last_call_; }
  void set_last_call(Event end);
  // Memory of the device, so many bytes at least, with the context current, for what goes to stream() one after the
  // other; or what cuMemAlloc says. Kept for the next call.
  DriverResult take_scratch(std::size_t n_bytes, DevicePointer& scratch);
  // Some graph works in it: nothing of it is given back before the end.
  void keep_scratch() { is_scratch_kept_ = true; }

 private:
  void free_scratch();
  Device(const Driver& driver, Context context) : driver_(driver), context_(context) {}

  const Driver& driver_;
  Context context_;
  Stream stream_ = nullptr;
  DeviceUuid uuid_{};
  int ordinal_ = 0;
  std::vector<Event> events_;  // that nobody uses
  Event last_call_ = nullptr;
  bool is_last_over_ = false;           // and its event was given back
  std::vector<DevicePointer> scratch_;  // the last is what is used; what is under way may use those before
  std::size_t scratch_bytes_ = 0;
  bool is_scratch_kept_ = false;
};

// The devices that a job's calls have met, by what the driver says of their memory.
class Devices {
 public:
  Outcome<Device*> of(const Driver& driver, const void* memory, const std::string& during);
  // Of the first of them; nullptr: they have met none.
  Context context() const { return by_ordinal_.empty() ? nullptr : by_ordinal_.begin()->second->context(); }

 private:
  std::map<int, std::unique_ptr<Device>> by_ordinal_;
};

}  // namespace drun::runtime::gpu
