// Launches the kernels of Adasum, for drun/gpu.h and for NCCL's communicators.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/src/dtype.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/kernels/arguments.h"

namespace drun::runtime::gpu {

inline std::uint64_t parts_of(std::uint64_t count) { return count / kChunk + (count % kChunk != 0 ? 1 : 0); }
// Size of the memory at `dots`, for vectors of `count` elements.
inline std::uint64_t dots_bytes(std::uint64_t count) { return sizeof(Dots) * (1 + parts_of(count)); }

inline DotsArguments dots_arguments(DevicePointer a, DevicePointer b, std::uint64_t count, DevicePointer dots) {
  return {a, b, count, dots + sizeof(Dots), parts_of(count), dots, 0};
}

// `dtype` is f32 or f64. `launch`(kernel, arguments, number of parts) enqueues one kernel.
template <typename Launch>
Status launch_dots(const DotsArguments& arguments, drun_dtype dtype, const Launch& launch) {
  if (arguments.n_parts > 0) {
    if (auto ok = launch(std::string("drun_dots_") + name_of(dtype), &arguments, arguments.n_parts); !ok) return ok;
  }
  return launch("drun_add_dots", &arguments, std::uint64_t{1});
}
template <typename Launch>
Status launch_adasum(DotsArguments arguments, DevicePointer into, drun_dtype dtype, const Launch& launch) {
  if (arguments.n_parts == 0) return {};
  arguments.into = into;
  return launch(std::string("drun_adasum_") + name_of(dtype), &arguments, arguments.n_parts);
}

}  // namespace drun::runtime::gpu
