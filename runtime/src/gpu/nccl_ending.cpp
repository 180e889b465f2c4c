#include "runtime/src/gpu/nccl_ending.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"
#include "runtime/src/gpu/device.h"

namespace drun::runtime::gpu {
namespace {

constexpr auto kPause = std::chrono::microseconds(200);  // between polls of ncclCommFinalize

// State of a thread that ends a communicator; it may outlive everything else.
struct NcclEnding {
  NcclRemains remains;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
};

void deregister_memory(const NcclRemains& it) {
  for (void* const handle : it.registered) it.nccl->CommDeregister(it.comm, handle);
}

void finalize_communicator(const NcclRemains& it) {
  auto state = it.nccl->CommFinalize(it.comm);
  while (state == kNcclInProgress) {
    std::this_thread::sleep_for(kPause);
    if (it.nccl->CommGetAsyncError(it.comm, &state) != kNcclSuccess) break;
  }
}

void carry_out(const NcclRemains& it, NcclEnd end) {
  if (end == NcclEnd::kAbort) {
    it.nccl->CommAbort(it.comm);
    return;
  }
  deregister_memory(it);
  if (end == NcclEnd::kDeregister) return;
  finalize_communicator(it);
  if (end == NcclEnd::kDestroy) it.nccl->CommDestroy(it.comm);
}

}  // namespace

void end_in_thread(NcclRemains remains, NcclEnd end, std::chrono::milliseconds wait) {
  const auto it = std::make_shared<NcclEnding>();
  it->remains = std::move(remains);
  try {
    const BlockedSignals blocked;
    std::thread([it, end] {
      ContextScope scope;
      if (scope.enter(*it->remains.driver, it->remains.context) == kSuccess) carry_out(it->remains, end);
      const std::lock_guard<std::mutex> lock(it->mutex);
      it->is_over = true;
      it->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return;  // no thread: leave the communicator behind
  }
  std::unique_lock<std::mutex> lock(it->mutex);
  it->changed.wait_for(lock, wait, [&] { return it->is_over; });
}

}  // namespace drun::runtime::gpu
