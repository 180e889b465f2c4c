// Allreduces in which pairs of ranks at distances 1, 2, 4, ... exchange: few steps. Of sizes that are no power of two,
// the ranks above the largest one below are taken in first by the ranks from 0 on, and told the result.
#pragma once

#include "runtime/src/algorithm/exchange.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// The largest power of two that is not above `size`, which is at least 1.
inline int power_below(int size) {
  int power = 1;
  while (2 * power <= size) power *= 2;
  return power;
}

// log2(size) steps with all of the data (recursive doubling).
Status doubling_allreduce(Exchange& exchange, const Operation& operation, const Span& data);
// 2 log2(size) steps with a half, a quarter, ... of it and back: a reduce_scatter by recursive halving, and an
// allgather by doubling (Rabenseifner). Needs memory of half the data.
Status halving_allreduce(Exchange& exchange, const Operation& operation, const Span& data);

}  // namespace drun::runtime
