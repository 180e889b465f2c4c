// The GPU of a rank that measures NCCL, used through NVIDIA's driver as any program would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"

namespace drun::bench {

// For one thread, in which its context is current from open() on.
class Device {
 public:
  // Opens device number `local_rank` modulo the number of devices that this process sees. The error has no subject.
  static Result<std::unique_ptr<Device>> open(int local_rank);

  ~Device();

  int ordinal() const { return ordinal_; }
  // The 16 bytes of its UUID, or of that of its MIG instance: the same for all processes of a host.
  const std::string& uuid() const { return uuid_; }
  const std::string& name() const { return name_; }  // "NVIDIA H100 80GB HBM3"
  Result<std::uint64_t> free_bytes() const;
  // Copies from host memory to GPU memory and waits until it is done. drun_gpu_read is the other direction.
  Result<void> put(void* memory, const void* from, std::size_t n_bytes) const;
  // Waits for all work enqueued on the legacy default stream.
  Result<void> wait() const;

 private:
  struct Driver;

  Device();
  int ordinal_ = 0;
  std::string name_, uuid_;
  std::unique_ptr<const Driver> driver_;
};

}  // namespace drun::bench
