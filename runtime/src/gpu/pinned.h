// Memory of the host that the driver has pinned: copies between it and devices run at full speed, concurrently with the
// processor.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// Keeps up to kMaxKept bytes from call to call. One thread at a time.
class PinnedMemory {
 public:
  static constexpr std::size_t kMaxKept = 64u << 20;
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Returns at least `n_bytes`; a context of a device must be current. nullptr: `error` has the driver's error.
  char* take(const Driver& driver, std::size_t n_bytes, DriverResult& error);
  void give_back(const Driver& driver, char* memory);
  // In place of give_back(), for memory that a device may still read or write: it is never freed.
  void leave(char* memory);

 private:
  struct Block {
    char* memory;
    std::size_t n_bytes;
    bool free;
    Context context;  // current when it was allocated
  };
  std::size_t n_kept() const;
  std::vector<Block> blocks_;
};

}  // namespace drun::runtime::gpu
