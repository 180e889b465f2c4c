#include "runtime/src/algorithm/dissemination.h"

namespace drun::runtime {

Status dissemination_barrier(PeerFlows& exchange, const Operation& operation) {
  const int rank = exchange.rank(), size = exchange.size();
  for (int distance = 1; distance < size; distance <<= 1) {
    BufferFlow to(Flow::Direction::kSend, (rank + distance) % size, nullptr, 0);
    BufferFlow from(Flow::Direction::kReceive, (rank - distance + size) % size, nullptr, 0);
    if (auto done = exchange.run(operation, {&to, &from}); !done) return done;
  }
  return {};
}

}  // namespace drun::runtime
