// The functions of NVIDIA's driver that libdrun calls: a table of pointers into libcuda.so.1, which libdrun does not
// link. The declarations are our own, so that libdrun builds without CUDA; names and numbers are those of CUDA's driver
// API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace drun::runtime::gpu {

using DriverResult = int;
using DevicePointer = std::uint64_t;
using Context = struct ContextOfDriver*;
using Stream = struct StreamOfDriver*;  // nullptr: the legacy default stream
using Event = struct EventOfDriver*;
using Module = struct ModuleOfDriver*;
using Function = struct FunctionOfDriver*;
inline DevicePointer device_pointer(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }
struct DeviceUuid {
  unsigned char bytes[16];
};

inline constexpr DriverResult kSuccess = 0, kNotReady = 600;

enum class PointerAttribute : int { kContext = 1, kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9, kIsLegacy = 10 };
inline constexpr unsigned kMemoryTypeDevice = 2;
// For cuDeviceGetAttribute.
inline constexpr int kMultiprocessorCount = 16, kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;
// True if kernels could not be loaded because they are not for this GPU, or this driver can't compile them.
inline bool is_about_kernels(DriverResult error) {
  return error == 200 || error == 209 || error == 218 || (error >= 221 && error <= 223);
}
inline constexpr unsigned kHostAllocPortable = 1;  // pinned for every context
inline constexpr unsigned kStreamNonBlocking = 1;  // no implicit order with the legacy default stream
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kCaptureNone = 0;
inline constexpr int kCaptureModeRelaxed = 2;
inline constexpr DriverResult kDeinitialized = 4;  // the process is about to end
// True if a call failed because it is not allowed while a stream is being captured.
inline bool is_about_capture(DriverResult error) { return error >= 900 && error <= 909; }

struct Driver {
  DriverResult (*get_error_name)(DriverResult error, const char** name);
  DriverResult (*version)(int* version);  // the newest CUDA that it supports: 13000 is 13.0
  DriverResult (*pointer_get_attribute)(void* value, PointerAttribute attribute, DevicePointer pointer);
  // Success also for memory that the driver does not know, with values that say so.
  DriverResult (*pointer_get_attributes)(unsigned n, PointerAttribute* attributes, void** values,
                                         DevicePointer pointer);
  DriverResult (*device_get)(int* device, int ordinal);
  DriverResult (*primary_context_retain)(Context* context, int device);
  DriverResult (*context_push)(Context context);
  DriverResult (*context_pop)(Context* context);
  DriverResult (*context_current)(Context* context);
  DriverResult (*host_alloc)(void** pointer, std::size_t n_bytes, unsigned flags);
  DriverResult (*host_free)(void* pointer);
  DriverResult (*copy_to_host)(void* to, DevicePointer from, std::size_t n_bytes, Stream stream);            // async
  DriverResult (*copy_to_device)(DevicePointer to, const void* from, std::size_t n_bytes, Stream stream);    // async
  DriverResult (*copy_on_device)(DevicePointer to, DevicePointer from, std::size_t n_bytes, Stream stream);  // async
  DriverResult (*set_bytes)(DevicePointer to, unsigned char value, std::size_t n_bytes, Stream stream);      // async
  DriverResult (*alloc)(DevicePointer* pointer, std::size_t n_bytes);
  DriverResult (*free)(DevicePointer pointer);
  DriverResult (*context_device)(int* device);  // of the current context
  DriverResult (*device_attribute)(int* value, int attribute, int device);
  DriverResult (*module_load)(Module* module, const void* image);
  DriverResult (*module_function)(Function* function, Module module, const char* name);
  DriverResult (*blocks_of_multiprocessor)(int* n_blocks, Function function, int n_threads, std::size_t shared_bytes);
  DriverResult (*launch)(Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                         unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Stream stream, void** arguments,
                         void** extra);
  DriverResult (*stream_query)(Stream stream);  // kNotReady: it has work left
  DriverResult (*stream_synchronize)(Stream stream);
  DriverResult (*device_uuid)(DeviceUuid* uuid, int device);
  DriverResult (*device_bus_id)(char* text, int n_bytes, int device);  // "0000:3b:00.0"
  DriverResult (*stream_priorities)(int* least, int* greatest);  // of the current context; greatest: lowest number
  DriverResult (*stream_create)(Stream* stream, unsigned flags, int priority);
  DriverResult (*stream_destroy)(Stream stream);
  DriverResult (*stream_wait_event)(Stream stream, Event event, unsigned flags);
  DriverResult (*stream_capture)(Stream stream, int* status);
  DriverResult (*exchange_capture_mode)(int* mode);  // of this thread
  DriverResult (*event_create)(Event* event, unsigned flags);
  DriverResult (*event_destroy)(Event event);
  DriverResult (*event_record)(Event event, Stream stream);
  DriverResult (*event_query)(Event event);  // kNotReady: work before it is not complete

  std::string name_of(DriverResult error) const;  // "CUDA_ERROR_ILLEGAL_ADDRESS"
};

// The table, if the process has loaded the driver: before that, no pointer can be a device's. The check costs a few
// nanoseconds, and never loads the driver. nullptr: the driver is not loaded, or lacks a function. Thread-safe.
const Driver* loaded_driver();

}  // namespace drun::runtime::gpu
