// Allreduces in which pairs of ranks at distances 1, 2, 4, ... exchange data, in few steps. If the size is not a power
// of two, let p be the largest one below it: each rank from p on first sends its data to rank - p, and receives the
// result at the end.
#pragma once

#include "runtime/src/algorithm/peer_flows.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// The largest power of two that is not above `size`, which is at least 1.
inline int power_below(int size) {
  int power = 1;
  while (2 * power <= size) power *= 2;
  return power;
}

// Takes log2(size) steps with all of the data (recursive doubling).
Status doubling_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data);
// Takes 2 log2(size) steps with a half, a quarter, ... of the data and back: a reduce_scatter by recursive halving and
// an allgather by doubling (Rabenseifner). Needs memory for half the data, or for all of it on a rank that receives the
// data of a rank from p on.
Status halving_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data);

}  // namespace drun::runtime
