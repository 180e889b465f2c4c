// Memory of the host that the driver has pinned: copies from and to devices go at full speed, and beside the processor.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// Kept from call to call, up to kMostKept bytes. One thread at a time.
class PinnedMemory {
 public:
  static constexpr std::size_t kMostKept = 64u << 20;
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // At least so many bytes; `context`, of a device, is current. nullptr: `error` says why.
  char* take(const Driver& driver, std::size_t n_bytes, DriverResult& error);
  void give_back(const Driver& driver, char* memory);

 private:
  struct Block {
    char* memory;
    std::size_t n_bytes;
    bool free;
    Context context;  // that was current when it was made
  };
  std::size_t n_kept() const;
  std::vector<Block> blocks_;
};

}  // namespace drun::runtime::gpu
