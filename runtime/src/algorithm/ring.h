// Rings: every rank sends to the next and receives from the previous one, both at once, so that each link carries
// 2 (size - 1) / size of the data: the least that is possible (Patarasuk and Yuan, JPDC 69(2), 2009).
#pragma once

#include <cstddef>
#include <memory>
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

// An allreduce in place whose data becomes ready piece by piece, and whose results come in the same way, while later
// pieces are not ready yet. One stream of bytes to the next rank and one from the previous: nothing waits between
// pieces.
class RingPieces {
 public:
  // `pieces`: of `data`, whole elements, none over another; the same on all ranks. `divisor`: of averages.
  RingPieces(int rank, int size, const Operation& operation, const Span& data, const std::vector<Block>& pieces,
             int divisor);
  ~RingPieces();
  RingPieces(const RingPieces&) = delete;
  RingPieces& operator=(const RingPieces&) = delete;

  std::vector<Flow*> flows();
  void give(std::size_t n_pieces);  // the first so many are ready
  std::size_t n_results() const;    // so many of the first hold the result, and are only read from now on

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drun::runtime
