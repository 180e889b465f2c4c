#include "runtime/src/backend/tcp/tcp_backend.h"

#include "runtime/src/algorithm/binomial.h"
#include "runtime/src/algorithm/dissemination.h"
#include "runtime/src/algorithm/ring.h"
#include "runtime/src/backend/tcp/edges.h"
#include "runtime/src/backend/tcp/mesh.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

// Up to here few steps count for more than few bytes. The same on all ranks: it decides who talks with whom.
constexpr std::size_t kSmallBytes = 64u << 10;

class TcpBackend final : public Backend {
 public:
  TcpBackend(const World& world, std::map<int, Fd> links) : mesh_(world, std::move(links)) {}

  Status allreduce(const Operation& operation, void* data) override {
    const std::size_t n_bytes = operation.count * size_of(operation.dtype);
    if (n_bytes < kSmallBytes || operation.count < static_cast<std::size_t>(mesh_.size())) {
      return binomial_allreduce(mesh_, operation, data);
    }
    return ring_allreduce(mesh_, operation, data);
  }
  Status broadcast(const Operation& operation, void* data) override {
    return binomial_broadcast(mesh_, operation, data, operation.count * size_of(operation.dtype));
  }
  Status allgather(const Operation& operation, void* data) override {
    return ring_allgather(mesh_, operation, data, operation.count * size_of(operation.dtype));
  }
  Status barrier(const Operation& operation) override { return dissemination_barrier(mesh_, operation); }
  bool has_left(int rank) const override { return mesh_.has_closed(rank); }
  void close() override { mesh_.close(); }

 private:
  Mesh mesh_;
};

}  // namespace

Outcome<std::unique_ptr<Backend>> make_tcp_backend(const World& world) {
  auto links = connect_edges(world);
  if (!links) return tl::unexpected<Failure>(links.error());
  return std::make_unique<TcpBackend>(world, std::move(*links));
}

}  // namespace drun::runtime
