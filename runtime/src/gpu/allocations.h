// Memory that drun_alloc has given out.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// Any thread.
class Allocations {
 public:
  // Of the GPU whose context is current; or of the host, pinned if there is one.
  Outcome<void*> take(std::size_t n_bytes, bool on_device);
  // nullptr is fine.
  Status give_back(void* memory);
  // How many bytes it was asked for; 0: it is not ours.
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

// Of this process; never destroyed.
Allocations& allocations();

}  // namespace drun::runtime::gpu
