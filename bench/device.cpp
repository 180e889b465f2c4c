#include "bench/device.h"

#include <dlfcn.h>

#include "base/text.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/open_library.h"

namespace drun::bench {

namespace {

using runtime::gpu::Driver;
using runtime::gpu::kSuccess;
constexpr int kNoDevice = 100;
constexpr std::size_t kNameBytes = 64;

Result<void> check(const Driver& driver, const char* function, int error) {
  if (error == kSuccess) return {};
  return fail(Errc::kInternal, "", std::string(function) + ": " + driver.name_of(error));
}

// Driver functions that libdrun does not use, by the names to which the macros of cuda.h expand.
struct Functions {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*set_context)(runtime::gpu::Context) = nullptr;
  int (*memory_info)(std::size_t*, std::size_t*) = nullptr;

  Result<void> find_all(void* library) {
    const char* missing = nullptr;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) missing = name;
    };
    find("cuInit", init);
    find("cuDeviceGetCount", device_count);
    find("cuDeviceGetName", device_name);
    find("cuCtxSetCurrent", set_context);
    find("cuMemGetInfo_v2", memory_info);
    if (missing != nullptr) return fail(Errc::kInternal, "", std::string("this host's driver has no ") + missing);
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<Device>> Device::open(int local_rank) {
  void* const library = runtime::gpu::open_library("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(Errc::kInternal, "",
                std::string("this host has no driver of NVIDIA's: ") + (why != nullptr ? why : "no libcuda.so.1"));
  }
  const Driver* const loaded = runtime::gpu::loaded_driver();
  if (loaded == nullptr) return fail(Errc::kInternal, "", "this host's driver is too old for libdrun");
  const Driver& driver = *loaded;
  Functions f;
  if (auto ok = f.find_all(library); !ok) return fail(std::move(ok.error()));
  const int begun = f.init(0);
  int n_devices = 0;
  if (begun != kNoDevice) {
    if (auto ok = check(driver, "cuInit", begun); !ok) return fail(std::move(ok.error()));
    if (auto ok = check(driver, "cuDeviceGetCount", f.device_count(&n_devices)); !ok)
      return fail(std::move(ok.error()));
  }
  if (n_devices == 0) return fail(Errc::kInternal, "", "this host has a driver of NVIDIA's, but no GPU");
  std::unique_ptr<Device> out(new Device);
  // If ranks share a GPU, libdrun refuses or supports it.
  out->n_devices_ = n_devices;
  out->ordinal_ = local_rank % n_devices;
  int device = 0;
  runtime::gpu::Context context = nullptr;
  char name[kNameBytes] = {};
  if (auto ok = check(driver, "cuDeviceGet", driver.device_get(&device, out->ordinal_)); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = check(driver, "cuDeviceGetName", f.device_name(name, sizeof name - 1, device)); !ok) {
    return fail(std::move(ok.error()));
  }
  if (auto ok = check(driver, "cuDevicePrimaryCtxRetain", driver.primary_context_retain(&context, device)); !ok) {
    return fail(std::move(ok.error()));
  }
  if (auto ok = check(driver, "cuCtxSetCurrent", f.set_context(context)); !ok) return fail(std::move(ok.error()));
  out->name_ = name;
  out->driver_ = loaded;
  out->memory_info_ = f.memory_info;
  return out;
}

Result<std::uint64_t> Device::free_bytes() const {
  std::size_t free = 0, all = 0;
  if (auto ok = check(*driver_, "cuMemGetInfo", memory_info_(&free, &all)); !ok) return fail(std::move(ok.error()));
  return std::uint64_t{free};
}

Result<void> Device::put(void* memory, const void* from, std::size_t n_bytes) const {
  if (n_bytes == 0) return {};
  const int error = driver_->copy_to_device(runtime::gpu::device_pointer(memory), from, n_bytes, nullptr);
  if (auto ok = check(*driver_, "cuMemcpyHtoDAsync", error); !ok) return ok;
  return wait();
}

Result<void> Device::wait() const {
  return check(*driver_, "cuStreamSynchronize", driver_->stream_synchronize(nullptr));
}

}  // namespace drun::bench
