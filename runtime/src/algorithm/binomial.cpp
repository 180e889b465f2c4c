#include "runtime/src/algorithm/binomial.h"

#include <memory>
#include <vector>

#include "runtime/src/dtype.h"
#include "runtime/src/reduce.h"

namespace drun::runtime {
namespace {

using Direction = Flow::Direction;

// Ranks are counted from the root. The parent of a rank is the rank without its lowest bit, so every edge is 2^k long.
int from_root(const Exchange& exchange, int root) {
  return (exchange.rank() - root + exchange.size()) % exchange.size();
}
int absolute(const Exchange& exchange, int root, int relative) { return (relative + root) % exchange.size(); }

}  // namespace

Status binomial_broadcast(Exchange& exchange, const Operation& operation, void* data, std::size_t n_bytes) {
  const int relative = from_root(exchange, operation.root);
  std::vector<std::unique_ptr<BufferFlow>> flows;
  const Flow* incoming = nullptr;
  int bit = 1;
  while (bit < exchange.size() && (relative & bit) == 0) bit <<= 1;
  if (relative != 0) {
    const int parent = absolute(exchange, operation.root, relative - bit);
    flows.push_back(std::make_unique<BufferFlow>(Direction::kReceive, parent, data, n_bytes));
    incoming = flows.back().get();
  }
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (relative + bit >= exchange.size()) continue;
    const int child = absolute(exchange, operation.root, relative + bit);
    flows.push_back(std::make_unique<BufferFlow>(Direction::kSend, child, data, n_bytes, incoming));
  }
  std::vector<Flow*> all;
  for (const auto& flow : flows) all.push_back(flow.get());
  return exchange.run(operation, all);
}

Status binomial_allreduce(Exchange& exchange, const Operation& operation, void* data) {
  const std::size_t n_bytes = operation.count * size_of(operation.dtype);
  std::vector<char> theirs(n_bytes);
  for (int bit = 1; bit < exchange.size(); bit <<= 1) {
    if ((exchange.rank() & bit) != 0) {
      BufferFlow up(Direction::kSend, exchange.rank() - bit, data, n_bytes);
      if (auto sent = exchange.run(operation, {&up}); !sent) return sent;
      break;
    }
    if (exchange.rank() + bit >= exchange.size()) continue;
    BufferFlow child(Direction::kReceive, exchange.rank() + bit, theirs.data(), n_bytes);
    if (auto received = exchange.run(operation, {&child}); !received) return received;
    accumulate(data, theirs.data(), operation.count, operation.dtype, operation.op);
  }
  if (exchange.rank() == 0) finish(data, operation.count, operation.dtype, operation.op, exchange.size());
  return binomial_broadcast(exchange, operation, data, n_bytes);  // root 0, as in every allreduce
}

}  // namespace drun::runtime
