// Adasum, as defined by Maleki et al. and implemented in Horovod: vectors of the same direction are averaged,
// orthogonal ones are added.
#pragma once

#include "runtime/src/algorithm/peer_flows.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// Works in place, on f32 or f64. Pairs of ranks at distances 1, 2, 4, ... exchange vectors, and both ranks of a pair
// compute the same bits. If the size is not a power of two, let p be the largest one below it: ranks from p on are
// first combined into ranks 0, 1, ..., and get the result at the end. Every pair exchanges its vectors whole, twice if
// they are longer than a piece, so that the extra memory does not grow with them.
Status adasum_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data);

// The dot products of two vectors, from which their Adasum follows:
// (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b. The sums are computed in double, in one order.
struct AdasumDots {
  double ab = 0, aa = 0, bb = 0;
};
void add_dots(AdasumDots& dots, const void* a, const void* b, std::size_t count, drun_dtype dtype);
// Writes the Adasum into `a`, or into `b` if `into_b`.
void adasum_combine(const AdasumDots& dots, void* a, void* b, bool into_b, std::size_t count, drun_dtype dtype);

}  // namespace drun::runtime
