#include "runtime/src/algorithm/binomial.h"

#include <memory>
#include <vector>

#include "runtime/src/reduce.h"

namespace drun::runtime {
namespace {

using Direction = Flow::Direction;

// Ranks are counted from the root. The parent of a rank is the rank without its lowest bit, so every edge is 2^k long.
int from_root(const PeerFlows& exchange, int root) {
  return (exchange.rank() - root + exchange.size()) % exchange.size();
}
int absolute(const PeerFlows& exchange, int root, int relative) { return (relative + root) % exchange.size(); }

}  // namespace

Status binomial_broadcast(PeerFlows& exchange, const Operation& operation, void* data, std::size_t n_bytes) {
  const int relative = from_root(exchange, operation.root_here());
  std::vector<std::unique_ptr<BufferFlow>> flows;
  const Flow* incoming = nullptr;
  int bit = 1;
  while (bit < exchange.size() && (relative & bit) == 0) bit <<= 1;
  if (relative != 0) {
    const int parent = absolute(exchange, operation.root_here(), relative - bit);
    flows.push_back(std::make_unique<BufferFlow>(Direction::kReceive, parent, data, n_bytes));
    incoming = flows.back().get();
  }
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (relative + bit >= exchange.size()) continue;
    const int child = absolute(exchange, operation.root_here(), relative + bit);
    flows.push_back(std::make_unique<BufferFlow>(Direction::kSend, child, data, n_bytes, incoming));
  }
  std::vector<Flow*> all;
  for (const auto& flow : flows) all.push_back(flow.get());
  return exchange.run(operation, all);
}

Status binomial_reduce(PeerFlows& exchange, const Operation& operation, const Span& data) {
  const int relative = from_root(exchange, operation.root_here());
  std::unique_ptr<char[]> theirs;
  for (int bit = 1; bit < exchange.size(); bit <<= 1) {
    if ((relative & bit) != 0) {
      BufferFlow up(Direction::kSend, absolute(exchange, operation.root_here(), relative - bit), data.data,
                    data.n_bytes());
      return exchange.run(operation, {&up});
    }
    if (relative + bit >= exchange.size()) continue;
    if (!theirs) theirs.reset(new char[data.n_bytes()]);
    const int child = absolute(exchange, operation.root_here(), relative + bit);
    BufferFlow from_child(Direction::kReceive, child, theirs.get(), data.n_bytes());
    if (auto received = exchange.run(operation, {&from_child}); !received) return received;
    accumulate(data.data, theirs.get(), data.count, data.dtype, operation.op);
  }
  finish(operation, data, exchange.size());
  return {};
}

}  // namespace drun::runtime
