// Memory that drun_alloc returns.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// Thread-safe.
class Allocations {
 public:
  // Memory of the GPU whose context is current, or of the host: pinned if a context is current.
  Outcome<void*> take(std::size_t n_bytes, bool on_device);
  // nullptr is fine; an error for memory that take() did not return.
  Status give_back(void* memory);
  // Number of bytes that were asked for; 0 for memory that take() did not return.
  std::size_t size_of(void* memory);

 private:
  enum class From { kNccl, kDriver, kPinned, kHost };
  struct Allocation {
    From from;
    Context context;
    std::size_t n_bytes;
  };
  static Outcome<void*> take_of_device(std::size_t n_bytes, Allocation& how);
  static Outcome<void*> take_of_host(std::size_t n_bytes, Allocation& how);

  std::mutex mutex_;
  std::map<void*, Allocation> by_address_;
};

// The allocations of this process; never destroyed.
Allocations& allocations();

}  // namespace drun::runtime::gpu
