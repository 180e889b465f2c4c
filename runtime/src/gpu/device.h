// A GPU as this process uses it: its context, our stream on it, events. docs/gpu.md.
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
inline tl::unexpected<Failure> driver_failure(const Driver& driver, const Operation& during, const char* function,
                                              DriverResult error) {
  return driver_failure(driver, describe(during), function, error);
}

// The failure of an operation whose deadline has passed and for which no other rank is at fault.
tl::unexpected<Failure> own_gpu_timeout(const Operation& operation);

// Waits until the stream has no work left (kSuccess), the stream or the driver reports an error, or `go_on`, which is
// polled, returns false (kNotReady).
DriverResult wait_for_stream(const Driver& driver, Stream stream, const std::function<bool()>& go_on);

// True if the stream is being captured, or can't be used because another one is.
bool is_captured(const Driver& driver, Stream stream);

struct PointerInfo {
  // The processor can't access the memory. False for memory that the driver does not know, manages, or has pinned.
  bool is_device = false;
  int ordinal = -1;  // of the device it is on; -1 or -2: none
};
// Asks the driver once.
PointerInfo pointer_info(const Driver& driver, const void* memory);
inline bool is_device_memory(const Driver& driver, const void* memory) {
  return pointer_info(driver, memory).is_device;
}

// True if memory of a device was mapped page by page (cuMemMap), as NCCL's allocator does it, not by cuMemAlloc.
bool is_mapped_memory(const Driver& driver, const void* memory);

// Makes a context current during its life; the destructor restores the one before. Asks the driver once if it is
// current already, as it is in programs that use CUDA's runtime.
class ContextScope {
 public:
  ContextScope() = default;
  ~ContextScope() { leave(); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  // Call once. Returns the result of cuCtxPushCurrent.
  DriverResult enter(const Driver& driver, Context context);
  bool is_entered() const { return is_entered_; }
  void leave();

 private:
  const Driver* pushed_ = nullptr;  // nullptr: there is nothing to restore
  bool is_entered_ = false;
};

// The context that the memory belongs to, else the primary context of its device, which CUDA's runtime uses.
Outcome<Context> context_of(const Driver& driver, DevicePointer memory, const std::string& during);

// One thread at a time.
class Device {
 public:
  // Work that is in progress goes on.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // The device that `memory` is on.
  static Outcome<std::unique_ptr<Device>> open(const Driver& driver, DevicePointer memory, const std::string& during);

  const Driver& driver() const { return driver_; }
  Context context() const { return context_; }
  Stream stream() const { return stream_; }
  const DeviceUuid& uuid() const { return uuid_; }
  const std::string& bus_id() const { return bus_id_; }  // of the whole GPU, if this is a part of it (MIG)
  int ordinal() const { return ordinal_; }
  int compute_capability() const { return compute_capability_; }  // 75: 7.5
  // Takes an event without timing; the context must be current. Returns the error of cuEventCreate.
  DriverResult take_event(Event& event);
  void give_back(Event event);
  bool has_event() const { return !events_.empty(); }  // take_event() makes none
  // NCCL's calls on a device run one after the other, whatever streams and communicators they are on: kernels of two
  // calls that both wait for other ranks could keep each other from running. Returns the event at the end of the last
  // call, which is not reused before another call is the last; nullptr: the last call has ended, or there was none.
  Event last_call() const { return is_last_over_ ? nullptr : last_call_; }
  // The stream that it was enqueued on, on which later calls come after it anyway.
  Stream last_stream() const { return last_stream_; }
  void set_last_call(Event end, Stream stream);
  // Scratch memory of the device, at least `n_bytes`, for work in the order of stream(); the context must be current.
  // Returns the error of cuMemAlloc. The memory is kept for the next call.
  DriverResult take_scratch(std::size_t n_bytes, DevicePointer& scratch);
  // A graph uses the scratch memory: frees none of it before the end.
  void keep_scratch() { is_scratch_kept_ = true; }

 private:
  void free_scratch();
  Device(const Driver& driver, Context context) : driver_(driver), context_(context) {}

  const Driver& driver_;
  Context context_;
  Stream stream_ = nullptr;
  DeviceUuid uuid_{};
  std::string bus_id_;
  int ordinal_ = 0;
  int compute_capability_ = 0;
  std::vector<Event> events_;  // not in use
  Event last_call_ = nullptr;
  Stream last_stream_ = nullptr;
  bool is_last_over_ = false;           // the last call's event was given back
  std::vector<DevicePointer> scratch_;  // the last is current; work in progress may still use those before
  std::size_t scratch_bytes_ = 0;
  bool is_scratch_kept_ = false;
};

// The devices on which a job's calls had memory, by the driver's ordinal.
class Devices {
 public:
  Outcome<Device*> of(const Driver& driver, const void* memory, const std::string& during);
  // Context of the first device; nullptr: there is none yet.
  Context context() const { return by_ordinal_.empty() ? nullptr : by_ordinal_.begin()->second->context(); }

 private:
  std::map<int, std::unique_ptr<Device>> by_ordinal_;
};

}  // namespace drun::runtime::gpu
