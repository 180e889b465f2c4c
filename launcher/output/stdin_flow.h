// Tracks how much of drun's standard input each reader has taken, and how much more may be read. Pure.
//
// Every reader gets all of it, so reading follows the slowest reader: the amount that waits for it is bounded by the
// window. A rank that has ended delays no other. Neither does a rank that never reads, as most programs do: after the
// others have waited for it for the timeout, it is left behind and gets nothing more. If it begins to read after all
// and reaches the point where bytes are missing, that is an error: a worker never sees input with a gap or with an
// early end.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"

namespace drun::launcher {

class StdinFlow {
 public:
  using Time = Clock::time_point;
  // Bytes that a pipe holds without a reader.
  static constexpr std::uint64_t kPipe = 64u << 10;

  StdinFlow(const std::vector<int>& readers, std::size_t window);
  std::size_t window() const { return window_; }
  bool gets(int rank) const;  // the next input is sent to it

  // taken() and over() return the number of bytes by which the credit grows.
  void sent(std::size_t n_bytes, Time now);  // to all ranks for which gets() is true
  // `n_bytes` 0: the worker has read some of what its pipe holds.
  std::size_t taken(int rank, std::size_t n_bytes, Time now);
  std::size_t over(int rank);

  // Readers that have taken nothing for the given time while others wait for them. Those that never read are left
  // behind from now on; drun still waits for the rest. Each reader is returned once.
  struct Stalled {
    int rank = 0;
    bool left_behind = false;
  };
  std::vector<Stalled> stalled(Time now, std::chrono::milliseconds limit);
  std::size_t take_credit();  // credit that became free by leaving readers behind
  // The input is over: true if the rank gets the end too.
  bool gets_end(int rank) const;
  // True if the reader was left behind, and has now read all that it was sent, although there was more.
  bool has_reached_gap(int rank) const;

 private:
  struct Reader {
    std::uint64_t taken = 0;
    std::uint64_t sent = 0;
    Time since{};            // when it last took something, or was sent something after it had taken everything
    bool has_begun = false;  // to read, as far as is known
    bool is_over = false, is_left_behind = false, is_told = false;
  };
  bool counts(const Reader& reader) const { return !reader.is_over && !reader.is_left_behind; }

  std::size_t window_;
  std::map<int, Reader> readers_;  // by rank
  std::uint64_t sent_ = 0;
  std::uint64_t granted_ = 0;  // minimum of `taken` when credit was last returned
};

}  // namespace drun::launcher
