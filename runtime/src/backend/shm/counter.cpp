#include "runtime/src/backend/shm/counter.h"

#include <linux/futex.h>
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

// Either the mover sees the sleeper, or the sleeper sees the step: one of the two sequentially consistent pairs of
// store and load comes first.
void Counter::move_to(std::uint32_t step) {
  value_.store(step, std::memory_order_seq_cst);
  if (n_sleepers_.load(std::memory_order_seq_cst) > 0) wake();
}

void Counter::sleep(std::uint32_t step, std::chrono::milliseconds time) {
  n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t now = value_.load(std::memory_order_seq_cst);
  if (static_cast<std::int32_t>(now - step) < 0) {
    const timespec limit{time.count() / 1000, static_cast<long>(time.count() % 1000 * 1'000'000)};
    futex(&value_, FUTEX_WAIT, now, &limit);
  }
  n_sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Counter::wake() { futex(&value_, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace drun::runtime
