// Trees of depth ceil(log2(size)): few steps, for reductions to one rank and broadcasts.
#pragma once

#include "runtime/src/algorithm/exchange.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// `data` of rank `operation.root` reaches everybody; a rank hands on what it has while more is still coming.
Status binomial_broadcast(Exchange& exchange, const Operation& operation, void* data, std::size_t n_bytes);
// In place. Rank `operation.root` has the result; what the others' `data` holds afterwards is of no use.
Status binomial_reduce(Exchange& exchange, const Operation& operation, const Span& data);

}  // namespace drun::runtime
