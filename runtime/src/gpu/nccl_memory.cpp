#include "runtime/src/gpu/nccl_memory.h"

#include <mutex>
#include <set>

#include "runtime/src/gpu/hang_guard.h"
#include "runtime/src/gpu/nccl_ending.h"

namespace drun::runtime::gpu {
namespace {

// Addresses at which registered memory begins: once for each communicator that has registered it.
class Addresses {
 public:
  void add(std::uintptr_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.insert(address);
  }
  void remove(std::uintptr_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.erase(all_.find(address));
  }
  bool has_one_within(std::uintptr_t begin, std::size_t n_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = all_.lower_bound(begin);
    return next != all_.end() && *next - begin < n_bytes;
  }

 private:
  std::mutex mutex_;
  std::multiset<std::uintptr_t> all_;
};
// Never destroyed, because programs free memory until the process ends.
Addresses& registered_addresses() {
  static Addresses* const all = new Addresses;
  return *all;
}

}  // namespace

bool is_registered(const void* memory, std::size_t n_bytes) {
  return registered_addresses().has_one_within(reinterpret_cast<std::uintptr_t>(memory), n_bytes);
}

std::string NcclMemory::add(NcclHandle comm, void* memory, std::size_t n_bytes) {
  if (nccl_.CommRegister == nullptr || nccl_.CommDeregister == nullptr) {
    return "NCCL " + nccl_version_text(nccl_.version) + " can't register memory";
  }
  const auto known = registered_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (known != registered_.end() && known->second.n_bytes == n_bytes) return "";
  if (auto why_not = remove(comm, memory, 1); !why_not.empty()) return why_not;
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    return "cuCtxPushCurrent: " + device_.driver().name_of(error);
  }
  void* handle = nullptr;
  if (const auto error = nccl_.CommRegister(comm, memory, n_bytes, &handle); error != kNcclSuccess) {
    return std::string("ncclCommRegister: ") + nccl_.GetErrorString(error);
  }
  if (handle == nullptr) return "";  // NCCL's environment disables registration
  registered_[reinterpret_cast<std::uintptr_t>(memory)] = {n_bytes, handle};
  registered_addresses().add(reinterpret_cast<std::uintptr_t>(memory));
  return "";
}

std::string NcclMemory::remove(NcclHandle comm, const void* memory, std::size_t n_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto first = registered_.lower_bound(begin), last = registered_.lower_bound(begin + n_bytes);
  if (first == last) return "";
  std::string why_not;
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    why_not = "cuCtxPushCurrent: " + device_.driver().name_of(error);  // the process is about to end
  }
  for (auto it = first; it != last; ++it) {
    registered_addresses().remove(it->first);
    if (!scope.is_entered()) continue;
    const HangGuard guard(job_context_.name_of(job_context_.rank()), "ncclCommDeregister",
                          job_context_.timeouts.op + kNcclEndTime);
    const auto error = nccl_.CommDeregister(comm, it->second.handle);
    if (error != kNcclSuccess) why_not = std::string("ncclCommDeregister: ") + nccl_.GetErrorString(error);
  }
  registered_.erase(first, last);
  return why_not;
}

std::vector<void*> NcclMemory::take_all() {
  std::vector<void*> handles;
  for (const auto& [address, registered] : registered_) {
    registered_addresses().remove(address);
    handles.push_back(registered.handle);
  }
  registered_.clear();
  return handles;
}

}  // namespace drun::runtime::gpu
