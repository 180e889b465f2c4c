// Who has taken how much of drun's standard input, and how much more may be read. Pure.
//
// Every reader gets all of it, so reading follows the slowest: what waits for it is bounded by the window. A rank that
// is over holds nobody up. Neither does one that never reads, as most programs do: once the others have waited for it
// for the patience, it is left behind, and gets nothing more. If it begins to read after all and comes to where bytes
// are missing, that is an error: never does a worker see input with a gap or with an early end.
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
  // What a pipe takes without anyone reading it.
  static constexpr std::uint64_t kPipe = 64u << 10;

  StdinFlow(const std::vector<int>& readers, std::size_t window);
  std::size_t window() const { return window_; }
  bool gets(int rank) const;  // what is read next goes to it

  // taken() and over() give the number of bytes by which credit grows.
  void sent(std::size_t n_bytes, Time now);  // to all that get it
  // 0 bytes: it has read some of what its pipe holds.
  std::size_t taken(int rank, std::size_t n_bytes, Time now);
  std::size_t over(int rank);

  // Readers for which others have waited for so long: those that never read are left behind from now on, the others are
  // still waited for. Each is told once.
  struct Stalled {
    int rank = 0;
    bool left_behind = false;
  };
  std::vector<Stalled> stalled(Time now, std::chrono::milliseconds patience);
  std::size_t take_credit();  // what leaving behind has set free
  // The input is over: who gets the end, too.
  bool gets_end(int rank) const;
  // It was left behind, and has now read all that it was sent while there was more.
  bool has_reached_gap(int rank) const;

 private:
  struct Reader {
    std::uint64_t taken = 0;
    std::uint64_t sent = 0;
    Time since{};            // when it last took something, or was sent something after it had taken all
    bool has_begun = false;  // to read, for all that is known
    bool is_over = false, is_left_behind = false, is_told = false;
  };
  bool counts(const Reader& reader) const { return !reader.is_over && !reader.is_left_behind; }

  std::size_t window_;
  std::map<int, Reader> readers_;  // by rank
  std::uint64_t sent_ = 0;
  std::uint64_t granted_ = 0;  // what all had taken when credit was last given
};

}  // namespace drun::launcher
