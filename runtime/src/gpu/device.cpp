#include "runtime/src/gpu/device.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace drun::runtime::gpu {
namespace {

Outcome<int> ordinal_of(const Driver& driver, DevicePointer memory, const std::string& during) {
  int ordinal = 0;
  const auto error = driver.pointer_get_attribute(&ordinal, PointerAttribute::kDeviceOrdinal, memory);
  if (error != kSuccess) return driver_failure(driver, during, "cuPointerGetAttribute", error);
  return ordinal;
}

Outcome<int> device_of(const Driver& driver, int ordinal, const std::string& during) {
  int device = 0;
  const auto error = driver.device_get(&device, ordinal);
  if (error != kSuccess) return driver_failure(driver, during, "cuDeviceGet", error);
  return device;
}

}  // namespace

tl::unexpected<Failure> driver_failure(const Driver& driver, const std::string& during, const char* function,
                                       DriverResult error) {
  return failure(DRUN_ERROR_SYSTEM, during + ": " + function + ": " + driver.name_of(error));
}

tl::unexpected<Failure> own_gpu_timeout(const Operation& operation) {
  return failure(
      DRUN_ERROR_TIMEOUT,
      describe(operation) + " timed out waiting for this rank's own GPU, whose stream has work that does not end");
}

DriverResult wait_for_stream(const Driver& driver, Stream stream, const std::function<bool()>& go_on) {
  constexpr auto kSpin = std::chrono::microseconds(50), kPause = std::chrono::microseconds(100);
  const auto began = Clock::now();
  for (;;) {
    const auto error = driver.stream_query(stream);
    if (error != kNotReady || !go_on()) return error;
    if (Clock::now() - began > kSpin) std::this_thread::sleep_for(kPause);
  }
}

bool is_captured(const Driver& driver, Stream stream) {
  int capture = kCaptureNone;
  const auto asked = driver.stream_capture(stream, &capture);
  return asked == kSuccess ? capture != kCaptureNone : is_about_capture(asked);
}

PointerInfo pointer_info(const Driver& driver, const void* memory) {
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  PointerAttribute wanted[] = {PointerAttribute::kMemoryType, PointerAttribute::kIsManaged,
                               PointerAttribute::kDeviceOrdinal};
  void* values[] = {&type, &managed, &ordinal};
  if (driver.pointer_get_attributes(3, wanted, values, device_pointer(memory)) != kSuccess) return {};
  return {type == kMemoryTypeDevice && managed == 0, ordinal};
}

bool is_mapped_memory(const Driver& driver, const void* memory) {
  int is_legacy = 1;  // the default for drivers that do not know the attribute
  (void)driver.pointer_get_attribute(&is_legacy, PointerAttribute::kIsLegacy, device_pointer(memory));
  return is_legacy == 0;
}

DriverResult ContextScope::enter(const Driver& driver, Context context) {
  Context current = nullptr;
  is_entered_ = driver.context_current(&current) == kSuccess && current == context;
  if (is_entered_) return kSuccess;
  const auto error = driver.context_push(context);
  is_entered_ = error == kSuccess;
  if (is_entered_) pushed_ = &driver;
  return error;
}

void ContextScope::leave() {
  Context ours = nullptr;
  if (const Driver* const driver = std::exchange(pushed_, nullptr)) driver->context_pop(&ours);
  is_entered_ = false;
}

Outcome<Context> context_of(const Driver& driver, DevicePointer memory, const std::string& during) {
  Context context = nullptr;
  driver.pointer_get_attribute(&context, PointerAttribute::kContext, memory);
  if (context != nullptr) return context;  // memory of a pool has no context
  const auto ordinal = ordinal_of(driver, memory, during);
  if (!ordinal) return tl::unexpected<Failure>(ordinal.error());
  const auto device = device_of(driver, *ordinal, during);
  if (!device) return tl::unexpected<Failure>(device.error());
  // Retained once per device for the life of the process, and never released.
  static std::mutex mutex;
  static auto& retained = *new std::map<int, Context>;
  const std::lock_guard<std::mutex> lock(mutex);
  Context& known = retained[*device];
  if (known == nullptr) {
    const auto error = driver.primary_context_retain(&known, *device);
    if (error != kSuccess) return driver_failure(driver, during, "cuDevicePrimaryCtxRetain", error);
  }
  return known;
}

Outcome<std::unique_ptr<Device>> Device::open(const Driver& driver, DevicePointer memory, const std::string& during) {
  auto context = context_of(driver, memory, during);
  if (!context) return tl::unexpected<Failure>(context.error());
  std::unique_ptr<Device> result(new Device(driver, *context));
  ContextScope scope;
  auto error = scope.enter(driver, *context);
  if (error != kSuccess) return driver_failure(driver, during, "cuCtxPushCurrent", error);
  const auto ordinal = ordinal_of(driver, memory, during);
  if (!ordinal) return tl::unexpected<Failure>(ordinal.error());
  const auto device = device_of(driver, *ordinal, during);
  if (!device) return tl::unexpected<Failure>(device.error());
  result->ordinal_ = *ordinal;
  int major = 0, minor = 0;
  if ((error = driver.device_attribute(&major, kComputeCapabilityMajor, *device)) != kSuccess ||
      (error = driver.device_attribute(&minor, kComputeCapabilityMinor, *device)) != kSuccess) {
    return driver_failure(driver, during, "cuDeviceGetAttribute", error);
  }
  result->compute_capability_ = 10 * major + minor;
  int least = 0, greatest = 0;
  if ((error = driver.device_uuid(&result->uuid_, *device)) != kSuccess) {
    return driver_failure(driver, during, "cuDeviceGetUuid", error);
  }
  char bus_id[32] = "";
  if ((error = driver.device_bus_id(bus_id, sizeof bus_id, *device)) != kSuccess) {
    return driver_failure(driver, during, "cuDeviceGetPCIBusId", error);
  }
  result->bus_id_ = bus_id;
  driver.stream_priorities(&least, &greatest);  // without priorities both are 0
  if ((error = driver.stream_create(&result->stream_, kStreamNonBlocking, greatest)) != kSuccess) {
    return driver_failure(driver, during, "cuStreamCreateWithPriority", error);
  }
  return result;
}

Device::~Device() {
  ContextScope scope;
  if (scope.enter(driver_, context_) != kSuccess) return;  // the process is about to end
  if (is_last_over_) events_.push_back(last_call_);
  for (const Event event : events_) driver_.event_destroy(event);
  free_scratch();
  if (stream_ != nullptr) driver_.stream_destroy(stream_);
}

DriverResult Device::take_event(Event& event) {
  if (events_.empty()) return driver_.event_create(&event, kEventDisableTiming);
  event = events_.back();
  events_.pop_back();
  return kSuccess;
}

void Device::give_back(Event event) {
  if (event == last_call_) {
    is_last_over_ = true;
  } else {
    events_.push_back(event);
  }
}

void Device::set_last_call(Event end, Stream stream) {
  if (is_last_over_) events_.push_back(last_call_);
  last_call_ = end;
  last_stream_ = stream;
  is_last_over_ = false;
}

// Freeing memory would wait for work in progress: then the memory is kept, until the next time or for good.
void Device::free_scratch() {
  if (stream_ == nullptr || scratch_.empty() || is_scratch_kept_ || driver_.stream_query(stream_) != kSuccess) return;
  for (const DevicePointer scratch : scratch_) driver_.free(scratch);
  scratch_.clear();
}

DriverResult Device::take_scratch(std::size_t n_bytes, DevicePointer& scratch) {
  if (n_bytes > scratch_bytes_) {
    DevicePointer larger = 0;
    const auto error = driver_.alloc(&larger, n_bytes);
    if (error != kSuccess) return error;
    free_scratch();
    scratch_.push_back(larger);
    scratch_bytes_ = n_bytes;
  }
  scratch = scratch_.back();
  return kSuccess;
}

Outcome<Device*> Devices::of(const Driver& driver, const void* memory, const std::string& during) {
  const auto ordinal = ordinal_of(driver, device_pointer(memory), during);
  if (!ordinal) return tl::unexpected<Failure>(ordinal.error());
  auto& known = by_ordinal_[*ordinal];
  if (!known) {
    auto opened = Device::open(driver, device_pointer(memory), during);
    if (!opened) return tl::unexpected<Failure>(opened.error());
    known = std::move(*opened);
  }
  return known.get();
}

}  // namespace drun::runtime::gpu
