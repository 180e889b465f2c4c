#include "runtime/src/gpu/gpu_adasum.h"

#include "runtime/src/algorithm/doubling.h"
#include "runtime/src/dtype.h"
#include "runtime/src/gpu/dots.h"
#include "runtime/src/gpu/kernel_module.h"

namespace drun::runtime::gpu {

Status GpuAdasum::run(const void* send) {
  if (auto ok = begin(send); !ok) return ok;
  if (auto ok = combine_all(); !ok) return ok;
  return scale(operation_.postscale);
}

Status GpuAdasum::begin(const void* send) {
  const std::size_t n_bytes = operation_.count * size_of(operation_.dtype),
                    aligned = (n_bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  {
    const CallWatch::Call watched(watch_, operation_, "the driver");
    DevicePointer scratch = 0;
    auto error = device_.take_scratch(aligned + dots_bytes(operation_.count), scratch);
    if (error != kSuccess) return driver_failure(device_.driver(), operation_, "cuMemAlloc", error);
    theirs_ = scratch;
    dots_ = scratch + aligned;
    if (send != data_) {
      error = device_.driver().copy_on_device(device_pointer(data_), device_pointer(send), n_bytes, ours_);
      if (error != kSuccess) return driver_failure(device_.driver(), operation_, "cuMemcpyDtoDAsync", error);
    }
  }
  return scale(operation_.prescale);
}

Status GpuAdasum::combine_all() {
  const int rank = group_.own, size = group_.size(), power = power_below(size);
  if (rank >= power) {
    if (auto gave = exchange_(data_, rank - power, nullptr, -1); !gave) return gave;
    return exchange_(nullptr, -1, data_, rank - power);
  }
  const bool has_more = rank + power < size;
  if (has_more) {
    if (auto taken = exchange_(nullptr, -1, reinterpret_cast<void*>(theirs_), rank + power); !taken) return taken;
    if (auto added = combine(true); !added) return added;
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const int peer = rank ^ distance;
    if (auto moved = exchange_(data_, peer, reinterpret_cast<void*>(theirs_), peer); !moved) return moved;
    if (auto added = combine(rank < peer); !added) return added;
  }
  return has_more ? exchange_(data_, rank + power, nullptr, -1) : Status();
}

Status GpuAdasum::launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts) const {
  const CallWatch::Call watched(watch_, operation_, "the driver");
  auto module = KernelModule::of(device_.driver(), device_.context(), during_);
  if (!module) return tl::unexpected<Failure>(module.error());
  return (*module)->launch(kernel, arguments, n_parts, ours_, during_);
}

Status GpuAdasum::combine(bool lower) {
  const auto with = [&](const std::string& kernel, const void* arguments, std::uint64_t n_parts) {
    return launch(kernel, arguments, n_parts);
  };
  const DevicePointer ours = device_pointer(data_);
  const auto arguments = dots_arguments(lower ? ours : theirs_, lower ? theirs_ : ours, operation_.count, dots_);
  if (auto ok = launch_dots(arguments, operation_.dtype, with); !ok) return ok;
  return launch_adasum(arguments, ours, operation_.dtype, with);
}

Status GpuAdasum::scale(double factor) const {
  if (factor == 1) return {};
  const ElementArguments arguments{device_pointer(data_), 0, operation_.count, factor};
  return launch(std::string("drun_scale_") + name_of(operation_.dtype), &arguments, parts_of(operation_.count));
}

}  // namespace drun::runtime::gpu
