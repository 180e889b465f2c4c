#include "runtime/src/backend/shm/counter.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace drun::runtime {
namespace {

// Shared between processes: not FUTEX_PRIVATE_FLAG.
void futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value, const timespec* time) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, time, nullptr, 0);
}

}  // namespace

bool order_others_when_asleep() {
#if defined(__SANITIZE_THREAD__)
  return false;  // TSan does not know this order
#else
  static const bool registered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return registered;
#endif
}

// Either the mover sees the sleeper, or the sleeper sees the step: each has a fence between its store and its load, or
// the sleeper executes one for both.
void Counter::settle(Sleepers& sleepers, bool sleepers_order) {
  if (sleepers_order) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
#if defined(__SANITIZE_THREAD__)
    sleepers.n_.fetch_add(0, std::memory_order_seq_cst);  // TSan knows no fence
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
  if (sleepers.n_.load(std::memory_order_relaxed) > 0) wake();
}

void Counter::sleep(std::uint32_t step, std::chrono::microseconds time, Sleepers& sleepers, bool order) {
  sleepers.n_.fetch_add(1, std::memory_order_seq_cst);
  if (order) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  const std::uint32_t now = value_.load(std::memory_order_seq_cst);
  if (static_cast<std::int32_t>(now - step) < 0) {
    const timespec limit{time.count() / 1'000'000, static_cast<long>(time.count() % 1'000'000 * 1000)};
    futex(&value_, FUTEX_WAIT, now, &limit);
  }
  sleepers.n_.fetch_sub(1, std::memory_order_relaxed);
}

void Counter::wake() { futex(&value_, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace drun::runtime
