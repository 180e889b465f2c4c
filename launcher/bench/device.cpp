#include "launcher/bench/device.h"

#include <dlfcn.h>

#include "base/text.h"
#include "runtime/src/gpu/open_library.h"

namespace drun::bench {

namespace {

using Stream = void*;
using Pointer = std::uint64_t;
constexpr int kSuccess = 0, kNoDevice = 100;
constexpr std::size_t kNameBytes = 64;

Pointer pointer(const void* memory) { return reinterpret_cast<Pointer>(memory); }

}  // namespace

// By the names that cuda.h's macros stand for.
struct Device::Functions {
  int (*get_error_name)(int, const char**) = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*memory_info)(std::size_t*, std::size_t*) = nullptr;
  int (*to_device)(Pointer, const void*, std::size_t, Stream) = nullptr;
  int (*to_host)(void*, Pointer, std::size_t, Stream) = nullptr;
  int (*set_bytes)(Pointer, unsigned char, std::size_t, Stream) = nullptr;
  int (*wait)(Stream) = nullptr;

  Result<void> find_all(void* library) {
    const char* missing = nullptr;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) missing = name;
    };
    find("cuGetErrorName", get_error_name);
    find("cuInit", init);
    find("cuDeviceGetCount", device_count);
    find("cuDeviceGet", device_get);
    find("cuDeviceGetName", device_name);
    find("cuDevicePrimaryCtxRetain", retain_context);
    find("cuCtxSetCurrent", set_context);
    find("cuMemGetInfo_v2", memory_info);
    find("cuMemcpyHtoDAsync_v2", to_device);
    find("cuMemcpyDtoHAsync_v2", to_host);
    find("cuMemsetD8Async", set_bytes);
    find("cuStreamSynchronize", wait);
    if (missing != nullptr) return fail(Errc::kInternal, "", std::string("this host's driver has no ") + missing);
    return {};
  }
  Result<void> check(const char* function, int error) const {
    if (error == kSuccess) return {};
    const char* name = nullptr;
    (void)get_error_name(error, &name);
    return fail(Errc::kInternal, "",
                std::string(function) + ": " + (name != nullptr ? name : "error " + std::to_string(error)));
  }
};

Result<std::unique_ptr<Device>> Device::open(int local_rank) {
  void* const library = runtime::gpu::open_library("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(Errc::kInternal, "",
                std::string("this host has no driver of NVIDIA's: ") + (why != nullptr ? why : "no libcuda.so.1"));
  }
  auto functions = std::make_shared<Functions>();
  if (auto ok = functions->find_all(library); !ok) return fail(std::move(ok.error()));
  const Functions& f = *functions;
  const int begun = f.init(0);
  int n_devices = 0;
  if (begun != kNoDevice) {
    if (auto ok = f.check("cuInit", begun); !ok) return fail(std::move(ok.error()));
    if (auto ok = f.check("cuDeviceGetCount", f.device_count(&n_devices)); !ok) return fail(std::move(ok.error()));
  }
  if (n_devices == 0) return fail(Errc::kInternal, "", "this host has a driver of NVIDIA's, but no GPU");
  std::unique_ptr<Device> out(new Device);
  // Ranks that share one are libdrun's to refuse, or to carry.
  out->n_devices_ = n_devices;
  out->ordinal_ = local_rank % n_devices;
  int device = 0;
  void* context = nullptr;
  char name[kNameBytes] = {};
  if (auto ok = f.check("cuDeviceGet", f.device_get(&device, out->ordinal_)); !ok) return fail(std::move(ok.error()));
  if (auto ok = f.check("cuDeviceGetName", f.device_name(name, sizeof name - 1, device)); !ok) {
    return fail(std::move(ok.error()));
  }
  if (auto ok = f.check("cuDevicePrimaryCtxRetain", f.retain_context(&context, device)); !ok) {
    return fail(std::move(ok.error()));
  }
  if (auto ok = f.check("cuCtxSetCurrent", f.set_context(context)); !ok) return fail(std::move(ok.error()));
  out->name_ = name;
  out->functions_ = std::move(functions);
  return out;
}

Result<std::uint64_t> Device::free_bytes() const {
  std::size_t free = 0, all = 0;
  if (auto ok = functions_->check("cuMemGetInfo", functions_->memory_info(&free, &all)); !ok) {
    return fail(std::move(ok.error()));
  }
  return std::uint64_t{free};
}

Result<void> Device::put(void* memory, const void* from, std::size_t n_bytes) const {
  if (n_bytes == 0) return {};
  if (auto ok = functions_->check("cuMemcpyHtoDAsync", functions_->to_device(pointer(memory), from, n_bytes, nullptr));
      !ok) {
    return ok;
  }
  return wait();
}

Result<void> Device::get(void* to, const void* memory, std::size_t n_bytes) const {
  if (n_bytes == 0) return {};
  if (auto ok = functions_->check("cuMemcpyDtoHAsync", functions_->to_host(to, pointer(memory), n_bytes, nullptr));
      !ok) {
    return ok;
  }
  return wait();
}

Result<void> Device::clear(void* memory, std::size_t n_bytes) const {
  if (n_bytes == 0) return {};
  if (auto ok = functions_->check("cuMemsetD8Async", functions_->set_bytes(pointer(memory), 0, n_bytes, nullptr));
      !ok) {
    return ok;
  }
  return wait();
}

Result<void> Device::wait() const { return functions_->check("cuStreamSynchronize", functions_->wait(nullptr)); }

}  // namespace drun::bench
