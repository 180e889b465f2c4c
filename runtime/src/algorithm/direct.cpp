#include "runtime/src/algorithm/direct.h"

#include <memory>

namespace drun::runtime {
namespace {

using Direction = Flow::Direction;

Status run_all(PeerFlows& exchange, const Operation& operation, const std::vector<std::unique_ptr<Flow>>& flows) {
  std::vector<Flow*> all;
  for (const auto& flow : flows) all.push_back(flow.get());
  return exchange.run(operation, all);
}

}  // namespace

Status direct_gather(PeerFlows& exchange, const Operation& operation, const void* send, void* recv,
                     std::size_t block_bytes) {
  std::vector<std::unique_ptr<Flow>> flows;
  if (exchange.rank() != operation.root_here()) {
    flows.push_back(std::make_unique<SendFlow>(operation.root_here(), send, block_bytes));
    return run_all(exchange, operation, flows);
  }
  for (int rank = 0; rank < exchange.size(); ++rank) {
    if (rank == operation.root_here()) continue;
    char* block = at(recv, static_cast<std::size_t>(rank) * block_bytes);
    flows.push_back(std::make_unique<BufferFlow>(Direction::kReceive, rank, block, block_bytes));
  }
  return run_all(exchange, operation, flows);
}

Status direct_scatter(PeerFlows& exchange, const Operation& operation, const void* send, void* recv,
                      std::size_t block_bytes) {
  std::vector<std::unique_ptr<Flow>> flows;
  if (exchange.rank() != operation.root_here()) {
    flows.push_back(std::make_unique<BufferFlow>(Direction::kReceive, operation.root_here(), recv, block_bytes));
    return run_all(exchange, operation, flows);
  }
  for (int rank = 0; rank < exchange.size(); ++rank) {
    if (rank == operation.root_here()) continue;
    const char* block = at(send, static_cast<std::size_t>(rank) * block_bytes);
    flows.push_back(std::make_unique<SendFlow>(rank, block, block_bytes));
  }
  return run_all(exchange, operation, flows);
}

Status pairwise_alltoall(PeerFlows& exchange, const Operation& operation, const void* send,
                         const std::vector<Block>& send_blocks, void* recv, const std::vector<Block>& recv_blocks) {
  const int rank = exchange.rank(), size = exchange.size();
  for (int k = 1; k < size; ++k) {
    const int to = (rank + k) % size, from = (rank - k + size) % size;
    const Block sent = send_blocks[static_cast<std::size_t>(to)];
    const Block received = recv_blocks[static_cast<std::size_t>(from)];
    SendFlow outgoing(to, sent.n_bytes > 0 ? at(send, sent.offset) : nullptr, sent.n_bytes);
    BufferFlow incoming(Direction::kReceive, from, received.n_bytes > 0 ? at(recv, received.offset) : nullptr,
                        received.n_bytes);
    if (auto done = exchange.run(operation, {&outgoing, &incoming}); !done) return done;
  }
  return {};
}

}  // namespace drun::runtime
