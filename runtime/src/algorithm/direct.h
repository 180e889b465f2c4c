// Each with each, without anybody between: the data of a pair crosses the network once.
#pragma once

#include <vector>

#include "runtime/src/algorithm/exchange.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// The root (operation.root) talks with all others at once. `recv` of the gather and `send` of the scatter,
// `block_bytes` per rank, are the root's alone; its own block stays where it is.
Status direct_gather(Exchange& exchange, const Operation& operation, const void* send, void* recv,
                     std::size_t block_bytes);
Status direct_scatter(Exchange& exchange, const Operation& operation, const void* send, void* recv,
                      std::size_t block_bytes);
// size - 1 rounds: in round k to rank + k and from rank - k, so that in each round everybody sends to somebody else.
// The own block is left alone.
Status pairwise_alltoall(Exchange& exchange, const Operation& operation, const void* send,
                         const std::vector<Block>& send_blocks, void* recv, const std::vector<Block>& recv_blocks);

}  // namespace drun::runtime
