// Rings: every rank sends to the next and receives from the previous one, both at once, so that each link carries
// 2 (size - 1) / size of the data: the least that is possible (Patarasuk and Yuan, JPDC 69(2), 2009).
#pragma once

#include <vector>

#include "runtime/src/algorithm/exchange.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// In place. The order of summation of an element depends on its place alone: the same bits on all ranks, every time.
Status ring_allreduce(Exchange& exchange, const Operation& operation, const Span& data);
// The first half of that. `data` is size blocks of equal counts; of these the rank's own holds the result afterwards,
// the others hold nothing of use.
Status ring_reduce_scatter(Exchange& exchange, const Operation& operation, const Span& data);
// The second half. A block of `data` for each rank; the own one is already in its place.
Status ring_allgather(Exchange& exchange, const Operation& operation, char* data, const std::vector<Block>& blocks);

}  // namespace drun::runtime
