// Rings: every rank sends to the next and receives from the previous one, both at once, so that each link carries
// 2 (size - 1) / size of the data: the least that is possible (Patarasuk and Yuan, JPDC 69(2), 2009).
#pragma once

#include "runtime/src/algorithm/exchange.h"

namespace drun::runtime {

// In place. The order of summation of an element depends on its place alone: the same bits on all ranks, every time.
Status ring_allreduce(Exchange& exchange, const Operation& operation, void* data);
// `data` holds size blocks of `block_bytes`; the own one is already in its place.
Status ring_allgather(Exchange& exchange, const Operation& operation, void* data, std::size_t block_bytes);

}  // namespace drun::runtime
