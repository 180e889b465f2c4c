#include "runtime/src/backend/tcp/tcp_backend.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/src/algorithm/adasum.h"
#include "runtime/src/algorithm/binomial.h"
#include "runtime/src/algorithm/choice.h"
#include "runtime/src/algorithm/direct.h"
#include "runtime/src/algorithm/dissemination.h"
#include "runtime/src/algorithm/doubling.h"
#include "runtime/src/algorithm/ring.h"
#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/backend/tcp/mesh.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

class RingAllreduce final : public PiecewiseAllreduce {
 public:
  RingAllreduce(Mesh& mesh, const Operation& operation, const Span& data, const std::vector<Block>& pieces, int divisor)
      : mesh_(mesh),
        operation_(operation),
        ring_(mesh.rank(), mesh.size(), operation, data, pieces, divisor),
        run_(mesh.begin(operation_, ring_.flows())) {}
  void give(std::size_t n_pieces) override { ring_.give(n_pieces); }
  Outcome<std::chrono::microseconds> advance() override { return mesh_.advance(*run_); }
  Status wait_for(std::size_t n_pieces) override {
    return mesh_.go_on(*run_, [&] { return ring_.n_results() >= n_pieces; });
  }
  Status wait_for_end() override { return mesh_.go_on(*run_, {}); }

 private:
  Mesh& mesh_;
  Operation operation_;
  RingPieces ring_;
  std::unique_ptr<Mesh::Run> run_;
};

class TcpBackendImpl final : public TcpBackend {
 public:
  TcpBackendImpl(const JobContext& job_context, std::shared_ptr<Connections> links, Group group)
      : mesh_(job_context, std::move(links), std::move(group)), forced_(job_context.allreduce) {}

  Status allreduce(const Operation& operation, const Span& data) override {
    switch (forced_ ? *forced_ : choose_allreduce(data.n_bytes(), data.count, mesh_.size())) {
      case AllreduceAlgorithm::kDoubling:
        return doubling_allreduce(mesh_, operation, data);
      case AllreduceAlgorithm::kHalving:
        return halving_allreduce(mesh_, operation, data);
      case AllreduceAlgorithm::kRing:
        break;
    }
    return ring_allreduce(mesh_, operation, data);
  }
  std::unique_ptr<PiecewiseAllreduce> begin_allreduce(const Operation& operation, const Span& data,
                                                      const std::vector<Block>& pieces, int divisor) override {
    return std::make_unique<RingAllreduce>(mesh_, operation, data, pieces, divisor);
  }
  Status reduce(const Operation& operation, const Span& data) override {
    return binomial_reduce(mesh_, operation, data);
  }
  Status reduce_scatter(const Operation& operation, const Span& data) override {
    return ring_reduce_scatter(mesh_, operation, data);
  }
  Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) override {
    return binomial_broadcast(mesh_, operation, data, n_bytes);
  }
  Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) override {
    return ring_allgather(mesh_, operation, static_cast<char*>(data), blocks);
  }
  Status gather(const Operation& operation, const void* send, void* recv) override {
    return direct_gather(mesh_, operation, send, recv, operation.count * size_of(operation.dtype));
  }
  Status scatter(const Operation& operation, const void* send, void* recv) override {
    return direct_scatter(mesh_, operation, send, recv, operation.count * size_of(operation.dtype));
  }
  Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks, void* recv,
                  const std::vector<Block>& recv_blocks) override {
    return pairwise_alltoall(mesh_, operation, send, send_blocks, recv, recv_blocks);
  }
  Status transfer(const std::vector<Transfer>& transfers) override {
    std::vector<std::unique_ptr<Flow>> flows;
    std::vector<Mesh::Part> parts;
    for (const auto& [operation, data] : transfers) {
      const auto direction = operation.kind == OpKind::kSend ? Flow::Direction::kSend : Flow::Direction::kReceive;
      const std::size_t n_bytes = operation.count * size_of(operation.dtype);
      flows.push_back(std::make_unique<BufferFlow>(direction, operation.root, data, n_bytes));
      parts.push_back({&operation, flows.back().get()});
    }
    return mesh_.run_each(parts);
  }
  Status adasum(const Operation& operation, const Span& data) override {
    return adasum_allreduce(mesh_, operation, data);
  }
  Status barrier(const Operation& operation) override { return dissemination_barrier(mesh_, operation); }
  bool has_closed(int rank) const override { return mesh_.has_closed(rank); }
  void close() override { mesh_.close(); }

 private:
  Mesh mesh_;
  std::optional<AllreduceAlgorithm> forced_;
};

}  // namespace

std::unique_ptr<TcpBackend> make_tcp_backend(const JobContext& job_context, std::shared_ptr<Connections> links,
                                             Group group) {
  return std::make_unique<TcpBackendImpl>(job_context, std::move(links), std::move(group));
}

}  // namespace drun::runtime
