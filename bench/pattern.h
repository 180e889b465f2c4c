// The data of one measurement: the input of every rank and the expected result, computed in double precision. The
// numbers are small integers, so that sums are exact in every order. They repeat after a prime number of elements, so
// that a block in a wrong place can't look right. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/kind.h"
#include "runtime/include/drun/drun.h"

namespace drun::bench {

// One call of one rank.
struct Call {
  Kind kind = Kind::kAllReduce;
  drun_dtype dtype = DRUN_FLOAT32;
  drun_op op = DRUN_SUM;
  int root = 0;
  int rank = 0, n_ranks = 1;
  Counts counts;
};

constexpr int kReduced = -1;

// A part of a rank's expected result: `count` elements, beginning with element `at` of its receive buffer, equal the
// input of rank `from`, or the reduction of all ranks' input, from element `first` on.
struct Part {
  std::size_t at = 0, count = 0;
  int from = 0;  // or kReduced
  std::size_t first = 0;
};

// Empty for ranks that receive nothing.
std::vector<Part> expected_parts(const Call& call);

class Pattern {
 public:
  // `round`: the numbers differ in each round.
  Pattern(const Call& call, std::uint64_t round);

  // Writes the input of this rank: call.counts.send elements.
  void fill(void* into) const;
  // Number of wrong elements in the receive buffer.
  std::uint64_t count_wrong(const void* received) const;

  // Element `i` of a rank's input, and of the reduction of all ranks' input.
  double given(int rank, std::size_t i) const;
  double reduced(std::size_t i) const;

  static constexpr std::size_t kPeriod = 1021;

 private:
  // One period of the input of rank `from`, or of the reduction (kReduced), as bytes.
  std::vector<char> encoded(int from) const;
  std::uint64_t hash(std::uint64_t a, std::uint64_t b) const;

  Call call_;
  std::uint64_t round_;
};

}  // namespace drun::bench
