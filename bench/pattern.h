// The data of one measurement: what every rank gives, and what has to come of it, computed in double precision. The
// numbers are small integers, so that sums are exact in every order, and repeat after a prime number of elements: no
// block that landed in a wrong place can look right. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/kind.h"
#include "runtime/include/drun/drun.h"

namespace drun::bench {

// One call: who, what, how much.
struct Call {
  Kind kind = Kind::kAllReduce;
  drun_dtype dtype = DRUN_FLOAT32;
  drun_op op = DRUN_SUM;
  int root = 0;
  int rank = 0, n_ranks = 1;
  Counts counts;
};

constexpr int kReduced = -1;

// A part of what a rank has to get: `count` elements, beginning with element `at` of its receive buffer, are those that
// rank `from` gave, or the reduction of all ranks', from element `first` on.
struct Part {
  std::size_t at = 0, count = 0;
  int from = 0;  // or kReduced
  std::size_t first = 0;
};

// Nothing for ranks that get nothing.
std::vector<Part> expected_parts(const Call& call);

class Pattern {
 public:
  // `round`: other numbers for each.
  Pattern(const Call& call, std::uint64_t round);

  // What this rank gives: call.counts.send elements.
  void fill(void* into) const;
  // How many elements of the receive buffer are not what they have to be.
  std::uint64_t count_wrong(const void* received) const;

  // Element `i` of what a rank gives, and of the reduction of all.
  double given(int rank, std::size_t i) const;
  double reduced(std::size_t i) const;

  static constexpr std::size_t kPeriod = 1021;

 private:
  // One period as bytes.
  std::vector<char> encoded(int from) const;
  std::uint64_t hash(std::uint64_t a, std::uint64_t b) const;

  Call call_;
  std::uint64_t round_;
};

}  // namespace drun::bench
