// Rings: every rank sends to the next and receives from the previous rank at the same time, so that each connection
// carries 2 (size - 1) / size of the data in an allreduce, which is the minimum (Patarasuk and Yuan, JPDC 69(2), 2009).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/src/algorithm/peer_flows.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// Works in place. The order of summation of an element depends only on its position, so the bits are the same on all
// ranks, every time.
Status ring_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data);
// The first half of ring_allreduce(). `data` holds size blocks of equal counts. Afterwards this rank's block holds the
// result, and the other blocks are undefined.
Status ring_reduce_scatter(PeerFlows& exchange, const Operation& operation, const Span& data);
// The second half of ring_allreduce(). `data` holds a block for each rank; the own block is already in place.
Status ring_allgather(PeerFlows& exchange, const Operation& operation, char* data, const std::vector<Block>& blocks);

// An allreduce in place whose data becomes ready piece by piece, and whose results arrive in the same order, while
// later pieces are not ready yet. It is one stream of bytes to the next rank and one from the previous, without a wait
// between pieces.
class RingPieces {
 public:
  // `pieces` are disjoint ranges of `data`, whole elements each, and the same on all ranks. Averages are divided by
  // `divisor`.
  RingPieces(int rank, int size, const Operation& operation, const Span& data, const std::vector<Block>& pieces,
             int divisor);
  ~RingPieces();
  RingPieces(const RingPieces&) = delete;
  RingPieces& operator=(const RingPieces&) = delete;

  std::vector<Flow*> flows();
  void give(std::size_t n_pieces);  // the first n_pieces are ready
  std::size_t n_results() const;    // number of leading pieces that hold the result; they are only read from now on

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drun::runtime
