// The GPU of a rank that measures NCCL, by way of the driver, as any program has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "runtime/src/gpu/driver.h"

namespace drun::bench {

// One thread. Its context is current from open() on.
class Device {
 public:
  // Number `local_rank` of those that this process sees, which has that many at least. An error has no subject.
  static Result<std::unique_ptr<Device>> open(int local_rank);

  int ordinal() const { return ordinal_; }
  int n_devices() const { return n_devices_; }       // that this process sees
  const std::string& name() const { return name_; }  // "NVIDIA H100 80GB HBM3"
  Result<std::uint64_t> free_bytes() const;
  // Waits until it is done. The other way is drun_gpu_read.
  Result<void> put(void* memory, const void* from, std::size_t n_bytes) const;
  // Until all is over that the legacy default stream has got.
  Result<void> wait() const;

 private:
  Device() = default;
  int ordinal_ = 0, n_devices_ = 1;
  std::string name_;
  const runtime::gpu::Driver* driver_ = nullptr;
  int (*memory_info_)(std::size_t*, std::size_t*) = nullptr;
};

}  // namespace drun::bench
