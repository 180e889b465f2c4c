// A number in shared memory that one rank increments and others wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace drun::runtime {

// Number of sleepers on a counter. Not on the counter's cache line: the mover reads it right after the counter, and
// would have to wait until its line is back from the ranks that poll it. Zero bytes are a valid value, 0.
class Sleepers {
  friend class Counter;
  std::atomic<std::uint32_t> n_;
};

// Counts steps. It wraps, so only the distance of two values has a meaning. Zero bytes are a valid counter. All calls
// on a counter pass the same `sleepers`.
class Counter {
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  bool has_reached(std::uint32_t step) const {
    return static_cast<std::int32_t>(value_.load(std::memory_order_acquire) - step) >= 0;
  }
  // Publishes the step and wakes sleepers. A rank that sees the step sees all earlier writes.
  void move_to(std::uint32_t step, Sleepers& sleepers, bool sleepers_order = false) {
    publish(step);
    settle(sleepers, sleepers_order);
  }
  // The two parts of move_to(). Between them the mover may poll the others' counters while its own step is on its way
  // to them. No sleeper wakes before settle().
  void publish(std::uint32_t step) { value_.store(step, std::memory_order_release); }
  // `sleepers_order`: order_others_when_asleep() has returned true in this process and in all that sleep on the
  // counter.
  void settle(Sleepers& sleepers, bool sleepers_order = false);
  // Returns when the counter has reached the step, on a wake-up, or when the time is over: the caller polls again.
  // `order`: other processes rely on order_others_when_asleep().
  void sleep(std::uint32_t step, std::chrono::microseconds time, Sleepers& sleepers, bool order = false);
  void wake();  // wakes all sleepers without a step

 private:
  std::atomic<std::uint32_t> value_;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// True if this process, before it sleeps, orders the memory accesses of all other processes that have called this
// (membarrier(2)): a fence in every step is expensive, and sleep is rare. False if the kernel can't or must not do it.
bool order_others_when_asleep();

}  // namespace drun::runtime
