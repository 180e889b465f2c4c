// How fast bytes arrive within a window of time, from the moments at which they did. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace drun::netdetect {

// Counts from the last arrival before the window to the last one in it: a slow link hands bytes over in few large
// pieces, and a piece at the edge would otherwise be all in or all out. A silence at the window's end that is longer
// than those before it counts as time in which nothing came.
class ArrivalMeter {
 public:
  ArrivalMeter(Deadline begin, Deadline end) : begin_(begin), end_(end), from_(begin), last_(begin) {}

  // `now` never goes back.
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
