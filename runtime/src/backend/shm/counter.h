// A number in shared memory that one rank moves on and others wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace drun::runtime {

// Counts steps; wraps, so that only the distance of two values means something. Zero bytes are a valid counter.
class Counter {
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  bool has_reached(std::uint32_t step) const {
    return static_cast<std::int32_t>(value_.load(std::memory_order_acquire) - step) >= 0;
  }
  // What was written before it is seen by whoever sees the step.
  void move_to(std::uint32_t step);
  // Returns once it has reached the step, was woken, or the time is over; whoever waits looks again.
  void sleep(std::uint32_t step, std::chrono::milliseconds time);
  void wake();  // all that sleep, though nothing has moved

 private:
  std::atomic<std::uint32_t> value_;
  std::atomic<std::uint32_t> n_sleepers_;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace drun::runtime
