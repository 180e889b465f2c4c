// A number in shared memory that one rank moves on and others wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace drun::runtime {

// How many sleep on a counter. Not beside it: whoever moves the counter looks here at once, and would wait until its
// line is back from those who look at that. Zero bytes are nobody.
class Sleepers {
  friend class Counter;
  std::atomic<std::uint32_t> n_;
};

// Counts steps; wraps, so that only the distance of two values means something. Zero bytes are a valid counter. Its
// `sleepers` are always the same.
class Counter {
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  bool has_reached(std::uint32_t step) const {
    return static_cast<std::int32_t>(value_.load(std::memory_order_acquire) - step) >= 0;
  }
  // What was written before it is seen by whoever sees the step. Wakes who sleeps.
  void move_to(std::uint32_t step, Sleepers& sleepers, bool sleepers_order = false) {
    publish(step);
    settle(sleepers, sleepers_order);
  }
  // The same in two parts: between them the mover may look at what others do, while its own step is still on its way to
  // them. Nobody is woken before settle().
  void publish(std::uint32_t step) { value_.store(step, std::memory_order_release); }
  // `sleepers_order`: this process and all that sleep on the counter have had order_others_when_asleep() return true.
  void settle(Sleepers& sleepers, bool sleepers_order = false);
  // Returns once it has reached the step, was woken, or the time is over; whoever waits looks again.
  // `order`: others rely on it (order_others_when_asleep).
  void sleep(std::uint32_t step, std::chrono::microseconds time, Sleepers& sleepers, bool order = false);
  void wake();  // all that sleep, though nothing has moved

 private:
  std::atomic<std::uint32_t> value_;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Whether this process, before it sleeps, makes all others that have called this see memory in order (membarrier(2)): a
// fence in every step is dear, and sleep is rare. False where the kernel can't, or must not.
bool order_others_when_asleep();

}  // namespace drun::runtime
