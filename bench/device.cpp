#include "bench/device.h"

#include <dlfcn.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "bench/open_driver.h"

namespace drun::bench {

namespace {

constexpr int kSuccess = 0, kNoDevice = 100;
constexpr std::size_t kNameBytes = 64, kUuidBytes = 16;

}  // namespace

// The functions of the driver that the worker calls, by the names to which the macros of cuda.h expand.
struct Device::Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_uuid)(void*, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*memory_info)(std::size_t*, std::size_t*) = nullptr;
  int (*copy_to_device)(std::uintptr_t, const void*, std::size_t, void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;

  Result<void> find_all(void* library) {
    const char* missing = nullptr;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) missing = name;
    };
    // Version 2 tells MIG instances of one GPU apart. Drivers before 11.4 have only version 1.
    find("cuDeviceGetUuid_v2", device_uuid);
    if (device_uuid == nullptr) {
      missing = nullptr;  // so far only version 2 is
      find("cuDeviceGetUuid", device_uuid);
    }
    find("cuInit", init);
    find("cuDeviceGetCount", device_count);
    find("cuDeviceGet", device_get);
    find("cuDeviceGetName", device_name);
    find("cuDevicePrimaryCtxRetain", retain_context);
    find("cuCtxSetCurrent", set_context);
    find("cuMemGetInfo_v2", memory_info);
    find("cuMemcpyHtoDAsync_v2", copy_to_device);
    find("cuStreamSynchronize", synchronize);
    find("cuGetErrorName", error_name);
    if (missing != nullptr) return fail(Errc::kInternal, "", std::string("this host's driver has no ") + missing);
    return {};
  }
  Result<void> check(const char* function, int error) const {
    if (error == kSuccess) return {};
    const char* name = nullptr;
    if (error_name(error, &name) != kSuccess || name == nullptr) name = "unknown error";
    return fail(Errc::kInternal, "", std::string(function) + ": " + name);
  }
};

Device::Device() = default;
Device::~Device() = default;

Result<std::unique_ptr<Device>> Device::open(int local_rank) {
  void* const library = open_driver();
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(Errc::kInternal, "",
                std::string("this host has no driver of NVIDIA's: ") + (why != nullptr ? why : "no libcuda.so.1"));
  }
  auto found = std::make_unique<Driver>();
  if (auto ok = found->find_all(library); !ok) return fail(std::move(ok.error()));
  const Driver& driver = *found;
  const int begun = driver.init(0);
  int n_devices = 0;
  if (begun != kNoDevice) {
    if (auto ok = driver.check("cuInit", begun); !ok) return fail(std::move(ok.error()));
    if (auto ok = driver.check("cuDeviceGetCount", driver.device_count(&n_devices)); !ok)
      return fail(std::move(ok.error()));
  }
  if (n_devices == 0) return fail(Errc::kInternal, "", "this host has a driver of NVIDIA's, but no GPU");
  std::unique_ptr<Device> out(new Device);
  // Ranks may share a GPU: libdrun refuses that or supports it.
  out->ordinal_ = local_rank % n_devices;
  int device = 0;
  void* context = nullptr;
  char name[kNameBytes] = {}, uuid[kUuidBytes] = {};
  if (auto ok = driver.check("cuDeviceGet", driver.device_get(&device, out->ordinal_)); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = driver.check("cuDeviceGetName", driver.device_name(name, sizeof name - 1, device)); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = driver.check("cuDeviceGetUuid", driver.device_uuid(uuid, device)); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = driver.check("cuDevicePrimaryCtxRetain", driver.retain_context(&context, device)); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = driver.check("cuCtxSetCurrent", driver.set_context(context)); !ok) return fail(std::move(ok.error()));
  out->name_ = name;
  out->uuid_.assign(uuid, sizeof uuid);
  out->driver_ = std::move(found);
  return out;
}

Result<std::uint64_t> Device::free_bytes() const {
  std::size_t free = 0, all = 0;
  if (auto ok = driver_->check("cuMemGetInfo", driver_->memory_info(&free, &all)); !ok)
    return fail(std::move(ok.error()));
  return std::uint64_t{free};
}

Result<void> Device::put(void* memory, const void* from, std::size_t n_bytes) const {
  if (n_bytes == 0) return {};
  const int error = driver_->copy_to_device(reinterpret_cast<std::uintptr_t>(memory), from, n_bytes, nullptr);
  if (auto ok = driver_->check("cuMemcpyHtoDAsync", error); !ok) return ok;
  return wait();
}

Result<void> Device::wait() const { return driver_->check("cuStreamSynchronize", driver_->synchronize(nullptr)); }

}  // namespace drun::bench
