#include "runtime/src/gpu/pinned.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace drun::runtime::gpu {

char* PinnedMemory::take(const Driver& driver, std::size_t n_bytes, DriverResult& error) {
  Block* smallest = nullptr;
  for (Block& block : blocks_) {
    if (!block.free || block.n_bytes < n_bytes) continue;
    if (smallest == nullptr || block.n_bytes < smallest->n_bytes) smallest = &block;
  }
  error = kSuccess;
  if (smallest != nullptr) {
    smallest->free = false;
    return smallest->memory;
  }
  n_bytes = std::max<std::size_t>(n_bytes, 4096);
  void* memory = nullptr;
  error = driver.host_alloc(&memory, n_bytes, kHostAllocPortable);
  if (error != kSuccess) return nullptr;
  Context context = nullptr;
  (void)driver.context_current(&context);
  blocks_.push_back({static_cast<char*>(memory), n_bytes, false, context});
  return blocks_.back().memory;
}

void PinnedMemory::give_back(const Driver& driver, char* memory) {
  for (Block& block : blocks_) {
    if (block.memory == memory) block.free = true;
  }
  // Free the smallest first: a larger one can replace it.
  while (n_kept() > kMaxKept) {
    auto victim = blocks_.end();
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      if (block->free && (victim == blocks_.end() || block->n_bytes < victim->n_bytes)) victim = block;
    }
    if (victim == blocks_.end()) return;
    driver.host_free(victim->memory);
    blocks_.erase(victim);
  }
}

void PinnedMemory::leave(char* memory) {
  const auto is_it = [memory](const Block& block) { return block.memory == memory; };
  blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(), is_it), blocks_.end());
  static std::mutex mutex;
  static auto* const left = new std::vector<char*>;  // for tools that look for leaks
  const std::lock_guard lock(mutex);
  left->push_back(memory);
}

PinnedMemory::~PinnedMemory() {
  const Driver* const driver = blocks_.empty() ? nullptr : loaded_driver();
  for (const Block& block : blocks_) {
    Context ours = nullptr;
    if (driver == nullptr || driver->context_push(block.context) != kSuccess) return;  // the process is about to end
    driver->host_free(block.memory);
    driver->context_pop(&ours);
  }
}

std::size_t PinnedMemory::n_kept() const {
  std::size_t n = 0;
  for (const Block& block : blocks_) n += block.free ? block.n_bytes : 0;
  return n;
}

}  // namespace drun::runtime::gpu
