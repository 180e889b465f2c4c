#include "runtime/src/gpu/allocations.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_library.h"

namespace drun::runtime::gpu {
namespace {

constexpr std::size_t kAlignment = 4096;  // a page

// NCCL rounds up to 2 MiB, some versions to 512 MiB: small allocations would waste a GPU's memory.
constexpr std::size_t kMinNccl = std::size_t{4} << 20;

// Searches once.
const Nccl* nccl_that_allocates() {
  static const Nccl* const found = []() -> const Nccl* {
    std::string why_not;
    const Nccl* const nccl = load_nccl(why_not);
    return nccl != nullptr && nccl->MemAlloc != nullptr && nccl->MemFree != nullptr ? nccl : nullptr;
  }();
  return found;
}

Status failed(const std::string& what) { return failure(DRUN_ERROR_SYSTEM, what); }

tl::unexpected<Failure> out_of_memory(std::size_t n_bytes) {
  return failure(DRUN_ERROR_SYSTEM, "drun_alloc of " + std::to_string(n_bytes) + " bytes: out of memory");
}

}  // namespace

Allocations& allocations() {
  static Allocations* const all = new Allocations;
  return *all;
}

Outcome<void*> Allocations::take(std::size_t n_bytes, bool on_device) {
  if (n_bytes > SIZE_MAX / 2) return out_of_memory(n_bytes);  // below, no rounding up overflows
  Allocation how{From::kHost, nullptr, n_bytes};
  auto memory = on_device ? take_of_device(n_bytes, how) : take_of_host(n_bytes, how);
  if (!memory) return memory;
  const std::lock_guard<std::mutex> lock(mutex_);
  by_address_[*memory] = how;
  return memory;
}

Outcome<void*> Allocations::take_of_device(std::size_t n_bytes, Allocation& how) {
  const std::string during = "drun_alloc of " + std::to_string(n_bytes) + " bytes";
  const Driver* const driver = loaded_driver();
  if (driver == nullptr) {
    return failure(DRUN_ERROR_UNSUPPORTED, during + ": this process has not loaded a driver of NVIDIA's");
  }
  if (driver->context_current(&how.context) != kSuccess || how.context == nullptr) {
    return failure(DRUN_ERROR_STATE, during + ": no GPU's context is current: choose one (cudaSetDevice)");
  }
  void* memory = nullptr;
  // In memory of NCCL's allocator NCCL's collectives need no copies. If NCCL fails, any memory is good enough.
  const Nccl* const nccl = n_bytes >= kMinNccl ? nccl_that_allocates() : nullptr;
  if (nccl != nullptr) {
    how.from = From::kNccl;
    if (nccl->MemAlloc(&memory, n_bytes) == kNcclSuccess && memory != nullptr) return memory;
  }
  DevicePointer pointer = 0;
  how.from = From::kDriver;
  const auto error = driver->alloc(&pointer, n_bytes);
  if (error != kSuccess) return driver_failure(*driver, during, "cuMemAlloc", error);
  return reinterpret_cast<void*>(pointer);
}

Outcome<void*> Allocations::take_of_host(std::size_t n_bytes, Allocation& how) {
  const Driver* const driver = loaded_driver();
  if (driver != nullptr && driver->context_current(&how.context) == kSuccess && how.context != nullptr) {
    void* memory = nullptr;
    how.from = From::kPinned;
    if (driver->host_alloc(&memory, n_bytes, kHostAllocPortable) == kSuccess) return memory;
  }
  how.from = From::kHost;
  void* const memory = std::aligned_alloc(kAlignment, (n_bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return out_of_memory(n_bytes);
  return memory;
}

std::size_t Allocations::size_of(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_address_.find(memory);
  return found == by_address_.end() ? 0 : found->second.n_bytes;
}

Status Allocations::give_back(void* memory) {
  if (memory == nullptr) return {};
  Allocation how{};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_address_.find(memory);
    if (found == by_address_.end()) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_free: this memory is not of drun_alloc, or was given back before");
    }
    how = found->second;
    by_address_.erase(found);
  }
  if (how.from == From::kHost) {
    std::free(memory);
    return {};
  }
  const Driver& driver = *loaded_driver();
  ContextScope scope;
  if (scope.enter(driver, how.context) != kSuccess) return {};  // the process is about to end
  if (how.from == From::kNccl) {
    if (nccl_that_allocates()->MemFree(memory) != kNcclSuccess) return failed("drun_free: ncclMemFree failed");
    return {};
  }
  const bool is_pinned = how.from == From::kPinned;
  const auto error = is_pinned ? driver.host_free(memory) : driver.free(device_pointer(memory));
  if (error == kSuccess || error == kDeinitialized) return {};
  return driver_failure(driver, "drun_free", is_pinned ? "cuMemFreeHost" : "cuMemFree", error);
}

}  // namespace drun::runtime::gpu
