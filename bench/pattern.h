// The data of one measurement: the input of every rank and the expected result, computed in double precision. The
// numbers are small integers. In sums of floating-point numbers only as many ranks contribute to one element as its
// type can add exactly in every order; the input of all others is 0 there. In averages, whose terms are rounded, they
// are so few that the input of one rank exceeds all rounding errors. The contributors change from element to element.
// The numbers repeat after a prime number of elements, so that a block in a wrong place can't look right. Pure.
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
  // Max error of that element of a correct reduction: 0, except in averages of floating-point numbers.
  double tolerance(std::size_t i) const;

  static constexpr std::size_t kPeriod = 1021;

 private:
  // One period of the input of rank `from`, or of the reduction (kReduced).
  std::vector<double> values(int from) const;
  std::vector<char> encoded(const std::vector<double>& values) const;
  int contributor(std::size_t k, std::size_t i) const;  // the rank that contributes to element `i` as number `k`
  bool contributes(int rank, std::size_t i) const;
  std::uint64_t hash(std::uint64_t a, std::uint64_t b) const;

  Call call_;
  std::uint64_t round_;
  bool adds_floats_;            // computes a sum or an average of floating-point numbers
  std::size_t n_contributors_;  // to one element; all ranks, except in sums and averages of floats
  std::size_t first_ = 0;       // the first contributor to element 0
};

}  // namespace drun::bench
