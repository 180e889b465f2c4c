#include "runtime/src/gpu/driver.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>

#include "runtime/src/gpu/open_library.h"

namespace drun::runtime::gpu {
namespace {

// Number of libraries that the process has ever loaded: while it does not change, no driver has been loaded.
unsigned long long count_of_loaded() {
  unsigned long long count = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;  // every entry has the same number
      },
      &count);
  return count;
}

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  if (function != nullptr) return true;
  std::fprintf(stderr,
               "drun: warning: this host's NVIDIA driver (libcuda.so.1) has no %s, so it is older than CUDA 10.1, and "
               "drun can't take memory of its GPUs: give it memory of the host\n",
               name);
  return false;
}

// The names are those to which cuda.h's macros expand.
bool find_all(void* library, Driver& d) {
  return find(library, "cuGetErrorName", d.get_error_name) && find(library, "cuDriverGetVersion", d.version) &&
         find(library, "cuPointerGetAttribute", d.pointer_get_attribute) &&
         find(library, "cuPointerGetAttributes", d.pointer_get_attributes) &&
         find(library, "cuDeviceGet", d.device_get) &&
         find(library, "cuDevicePrimaryCtxRetain", d.primary_context_retain) &&
         find(library, "cuCtxPushCurrent_v2", d.context_push) && find(library, "cuCtxPopCurrent_v2", d.context_pop) &&
         find(library, "cuCtxGetCurrent", d.context_current) && find(library, "cuMemHostAlloc", d.host_alloc) &&
         find(library, "cuMemFreeHost", d.host_free) && find(library, "cuMemcpyDtoHAsync_v2", d.copy_to_host) &&
         find(library, "cuMemcpyHtoDAsync_v2", d.copy_to_device) && find(library, "cuStreamQuery", d.stream_query) &&
         find(library, "cuMemcpyDtoDAsync_v2", d.copy_on_device) && find(library, "cuMemsetD8Async", d.set_bytes) &&
         find(library, "cuMemAlloc_v2", d.alloc) && find(library, "cuMemFree_v2", d.free) &&
         find(library, "cuCtxGetDevice", d.context_device) &&
         find(library, "cuDeviceGetAttribute", d.device_attribute) &&
         find(library, "cuModuleLoadData", d.module_load) && find(library, "cuModuleGetFunction", d.module_function) &&
         find(library, "cuLaunchKernel", d.launch) &&
         find(library, "cuOccupancyMaxActiveBlocksPerMultiprocessor", d.blocks_of_multiprocessor) &&
         find(library, "cuStreamSynchronize", d.stream_synchronize) &&
         find(library, "cuDeviceGetUuid", d.device_uuid) && find(library, "cuDeviceGetPCIBusId", d.device_bus_id) &&
         find(library, "cuCtxGetStreamPriorityRange", d.stream_priorities) &&
         find(library, "cuStreamCreateWithPriority", d.stream_create) &&
         find(library, "cuStreamDestroy_v2", d.stream_destroy) &&
         find(library, "cuStreamWaitEvent", d.stream_wait_event) &&
         find(library, "cuStreamIsCapturing", d.stream_capture) &&
         find(library, "cuThreadExchangeStreamCaptureMode", d.exchange_capture_mode) &&
         find(library, "cuEventCreate", d.event_create) && find(library, "cuEventDestroy_v2", d.event_destroy) &&
         find(library, "cuEventRecord", d.event_record) && find(library, "cuEventQuery", d.event_query);
}

const Driver* poll() {
  void* const library = open_library("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);  // stays open: the process uses it
  if (library == nullptr) return nullptr;
  static Driver table;
  static const bool whole = find_all(library, table);
  return whole ? &table : nullptr;
}

}  // namespace

std::string Driver::name_of(DriverResult error) const {
  const char* name = nullptr;
  if (get_error_name(error, &name) == kSuccess && name != nullptr) return name;
  return "error " + std::to_string(error);
}

const Driver* loaded_driver() {
  static std::atomic<const Driver*> found{nullptr};
  static std::atomic<unsigned long long> looked_at{0};
  if (const Driver* known = found.load(std::memory_order_acquire)) return known;
  const auto count = count_of_loaded();
  // Read it again: another thread may have found the driver since.
  if (count == looked_at.load(std::memory_order_acquire)) return found.load(std::memory_order_acquire);
  const Driver* const here = poll();
  if (here != nullptr) found.store(here, std::memory_order_release);
  looked_at.store(count, std::memory_order_release);
  return here;
}

}  // namespace drun::runtime::gpu
