// Adasum, as Maleki et al. define it and Horovod has it: vectors that point the same way are averaged, orthogonal ones
// are added.
#pragma once

#include "runtime/src/algorithm/exchange.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// In place, of f32 or f64. Pairs at distance 1, 2, 4, ...: both of a pair come to the same bits. Of sizes that are no
// power of two, the ranks above the largest one below are taken in first by the ranks from 0 on. Every pair exchanges
// its vectors whole, twice if they are longer than a piece: what is needed beside them does not grow with them.
Status adasum_allreduce(Exchange& exchange, const Operation& operation, const Span& data);

// What two vectors give: (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b. The sums are made in double, in one order.
struct AdasumDots {
  double ab = 0, aa = 0, bb = 0;
};
void add_dots(AdasumDots& dots, const void* a, const void* b, std::size_t count, drun_dtype dtype);
// Into `a`, or into `b` if `into_b`.
void adasum_combine(const AdasumDots& dots, void* a, void* b, bool into_b, std::size_t count, drun_dtype dtype);

}  // namespace drun::runtime
