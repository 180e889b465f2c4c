#include "runtime/src/gpu/work.h"

#include "runtime/src/dtype.h"
#include "runtime/src/gpu/kernel_module.h"

namespace drun::runtime::gpu {

tl::unexpected<Failure> wrong_argument(const std::string& during, const std::string& what) {
  return failure(DRUN_ERROR_ARGUMENT, during + ": " + what);
}

Status Work::begin(const void* memory, const char* what) {
  if (memory == nullptr) return wrong_argument(during_, std::string(what) + " is a null pointer");
  driver_ = loaded_driver();
  if (driver_ == nullptr || !is_device_memory(*driver_, memory)) {
    return wrong_argument(during_, std::string(what) + " is not memory of a GPU");
  }
  auto context = context_of(*driver_, device_pointer(memory), during_);
  if (!context) return tl::unexpected<Failure>(context.error());
  context_ = *context;
  const auto error = scope_.enter(*driver_, context_);
  if (error != kSuccess) return failed("cuCtxPushCurrent", error);
  return {};
}

Status Work::launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts) {
  auto module = KernelModule::of(*driver_, context_, during_);
  if (!module) return tl::unexpected<Failure>(module.error());
  return (*module)->launch(kernel, arguments, n_parts, stream_, during_);
}

tl::unexpected<Failure> Work::failed(const char* function, DriverResult error) const {
  return driver_failure(*driver_, during_, function, error);
}

Status check_wide(const Work& work, drun_dtype dtype) {
  if (is_wide_float(dtype)) return {};
  return wrong_argument(work.during(), "the elements must be f32 or f64");
}

}  // namespace drun::runtime::gpu
