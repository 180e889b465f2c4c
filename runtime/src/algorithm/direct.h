// Direct exchange between every pair of ranks: the data of a pair crosses the network once.
#pragma once

#include <vector>

#include "runtime/src/algorithm/peer_flows.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// The root (operation.root) exchanges data with all other ranks at once. `recv` of the gather and `send` of the
// scatter, `block_bytes` per rank, are used at the root only; the root's own block is not moved.
Status direct_gather(PeerFlows& exchange, const Operation& operation, const void* send, void* recv,
                     std::size_t block_bytes);
Status direct_scatter(PeerFlows& exchange, const Operation& operation, const void* send, void* recv,
                      std::size_t block_bytes);
// Takes size - 1 rounds: in round k a rank sends to rank + k and receives from rank - k, so that no two ranks send to
// the same rank in a round. The own block is not moved.
Status pairwise_alltoall(PeerFlows& exchange, const Operation& operation, const void* send,
                         const std::vector<Block>& send_blocks, void* recv, const std::vector<Block>& recv_blocks);

}  // namespace drun::runtime
