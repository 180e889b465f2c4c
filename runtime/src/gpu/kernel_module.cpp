#include "runtime/src/gpu/kernel_module.h"

#include <algorithm>
#include <memory>

#include "runtime/src/gpu/kernel_image.h"
#include "runtime/src/gpu/kernels/arguments.h"

namespace drun::runtime::gpu {
namespace {

// Allows driver calls while a stream is being captured: none of these goes to a stream.
class CaptureAllowed {
 public:
  explicit CaptureAllowed(const Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  ~CaptureAllowed() { driver_.exchange_capture_mode(&mode_); }
  CaptureAllowed(const CaptureAllowed&) = delete;
  CaptureAllowed& operator=(const CaptureAllowed&) = delete;

 private:
  const Driver& driver_;
  int mode_ = kCaptureModeRelaxed;
};

}  // namespace

Outcome<KernelModule*> KernelModule::of(const Driver& driver, Context context, const std::string& during) {
  static std::mutex mutex;
  static auto& loaded =
      *new std::map<Context, std::unique_ptr<KernelModule>>;  // never destroyed: the driver may be gone
  if (kernel_image() == nullptr) {
    return failure(DRUN_ERROR_UNSUPPORTED,
                   during + ": this build of libdrun has no kernels for GPUs: it was made without nvcc");
  }
  const std::lock_guard<std::mutex> lock(mutex);
  auto& known = loaded[context];
  if (!known) {
    std::unique_ptr<KernelModule> made(new KernelModule(driver));
    if (auto ok = made->load(during); !ok) return tl::unexpected<Failure>(ok.error());
    known = std::move(made);
  }
  return known.get();
}

Status KernelModule::load(const std::string& during) {
  const CaptureAllowed allowed(driver_);
  int device = 0;
  auto error = driver_.context_device(&device);
  if (error != kSuccess) return driver_failure(driver_, during, "cuCtxGetDevice", error);
  if ((error = driver_.device_attribute(&n_multiprocessors_, kMultiprocessorCount, device)) != kSuccess) {
    return driver_failure(driver_, during, "cuDeviceGetAttribute", error);
  }
  error = driver_.module_load(&module_, kernel_image());
  if (is_about_kernels(error)) {
    return failure(DRUN_ERROR_UNSUPPORTED,
                   during + ": this build of libdrun has no kernels for this GPU, or its driver is too old for them (" +
                       driver_.name_of(error) + ")");
  }
  if (error != kSuccess) return driver_failure(driver_, during, "cuModuleLoadData", error);
  return {};
}

Outcome<KernelModule::Kernel> KernelModule::find(const std::string& name, const std::string& during) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kernel& known = kernels_[name];
  if (known.function != nullptr) return known;
  const CaptureAllowed allowed(driver_);
  Function function = nullptr;
  auto error = driver_.module_function(&function, module_, name.c_str());
  if (error != kSuccess) return driver_failure(driver_, during, ("kernel " + name).c_str(), error);
  int n_blocks = 0;
  error = driver_.blocks_of_multiprocessor(&n_blocks, function, static_cast<int>(kThreads), 0);
  if (error != kSuccess) {
    return driver_failure(driver_, during, "cuOccupancyMaxActiveBlocksPerMultiprocessor", error);
  }
  known = {function, static_cast<std::uint64_t>(std::max(n_blocks * n_multiprocessors_, 1))};
  return known;
}

Status KernelModule::launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts, Stream stream,
                            const std::string& during) {
  const auto found = find(kernel, during);
  if (!found) return tl::unexpected<Failure>(found.error());
  const auto n_blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(n_parts, 1, found->max_blocks));
  void* parameters[] = {const_cast<void*>(arguments)};
  const auto error = driver_.launch(found->function, n_blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
  if (error != kSuccess) return driver_failure(driver_, during, ("launch of " + kernel).c_str(), error);
  return {};
}

}  // namespace drun::runtime::gpu
