// Trees of depth ceil(log2(size)): few steps, for reductions to one rank and broadcasts.
#pragma once

#include "runtime/src/algorithm/peer_flows.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// Broadcasts `data` of rank `operation.root` to all ranks. A rank forwards the bytes it has while more are still
// arriving.
Status binomial_broadcast(PeerFlows& exchange, const Operation& operation, void* data, std::size_t n_bytes);
// Works in place. Rank `operation.root` gets the result; `data` of the other ranks is undefined afterwards.
Status binomial_reduce(PeerFlows& exchange, const Operation& operation, const Span& data);

}  // namespace drun::runtime
