// Measures the rate at which bytes arrive within a time window, from their arrival times. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace drun::netdetect {

// Counts from the last arrival before the window to the last one in it: a slow link delivers bytes in a few large
// pieces, and a piece at the edge would otherwise count in full or not at all. The silence at the window's end counts
// as measured time only if it is more than twice as long as the longest gap before it.
class ArrivalMeter {
 public:
  ArrivalMeter(Deadline begin, Deadline end) : begin_(begin), end_(end), from_(begin), last_(begin) {}

  // `now` must not decrease.
  void add(Deadline now, std::size_t n_bytes) {
    if (now > end_) return;
    if (now <= begin_) {
      from_ = now;
    } else {
      n_bytes_ += n_bytes;
      longest_gap_ = std::max(longest_gap_, now - last_);
    }
    last_ = now;
  }

  // Bits; 0: nothing arrived in the window.
  double bits_per_second() const {
    return n_bytes_ == 0 ? 0 : 8.0 * static_cast<double>(n_bytes_) / std::max(seconds(), 1e-9);
  }
  double seconds() const {
    if (n_bytes_ == 0) return std::chrono::duration<double>(end_ - begin_).count();
    const bool silent = end_ - last_ > 2 * longest_gap_;
    return std::chrono::duration<double>((silent ? end_ : last_) - from_).count();
  }
  Deadline end() const { return end_; }

 private:
  Deadline begin_, end_;
  Deadline from_;  // the last arrival before the window; without one its begin
  Deadline last_;
  Clock::duration longest_gap_{};
  std::uint64_t n_bytes_ = 0;
};

}  // namespace drun::netdetect
