#include "runtime/src/backend/shm/shm_backend.h"

#include <utility>

#include "runtime/src/backend/shm/shm_moves.h"
#include "runtime/src/backend/shm/shm_reduce.h"
#include "runtime/src/backend/shm/step_barrier.h"

namespace drun::runtime {
namespace {

class ShmBackendImpl final : public ShmBackend {
 public:
  ShmBackendImpl(const JobContext& job_context, const Group& group, std::shared_ptr<Segment> segment,
                 std::unique_ptr<Backend> network)
      : group_(group),
        segment_(std::move(segment)),
        network_(std::move(network)),
        barrier_(job_context, group_, *segment_, *network_) {}

  Status allreduce(const Operation& operation, const Span& data) override {
    return allreduce_from(operation, data.data, data);
  }
  Status allreduce_from(const Operation& operation, const char* from, const Span& data) override {
    Status done = data.n_bytes() <= shm::kSmallBytes ? shm::reduce_at_once(barrier_, operation, from, data)
                                                     : shm::reduce_in_parts(barrier_, operation, from, data, true);
    end_call(done);
    return done;
  }
  // The other contents of `data` afterwards are undefined for the caller.
  Status reduce(const Operation& operation, const Span& data) override {
    if (data.n_bytes() <= shm::kSmallBytes) return allreduce(operation, data);
    return finish(shm::reduce_in_parts(barrier_, operation, data.data, data, barrier_.rank() == operation.root_here()));
  }
  Status reduce_scatter(const Operation& operation, const Span& data) override {
    const auto n = static_cast<std::size_t>(barrier_.size());
    return reduce_to_blocks(operation, data, equal_blocks(n, data.n_bytes() / n));
  }
  Status reduce_to_blocks(const Operation& operation, const Span& data, const std::vector<Block>& blocks) override {
    return finish(shm::reduce_blocks(barrier_, operation, data, blocks));
  }
  void meanwhile(Meanwhile work) override { barrier_.meanwhile(std::move(work)); }
  Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) override {
    return finish(shm::broadcast(barrier_, operation, static_cast<char*>(data), n_bytes));
  }
  Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) override {
    return finish(shm::allgather(barrier_, operation, static_cast<char*>(data), blocks));
  }
  // These calls go from rank to rank, over the network's loopback.
  Status gather(const Operation& operation, const void* send, void* recv) override {
    return finish(network_->gather(operation, send, recv));
  }
  Status scatter(const Operation& operation, const void* send, void* recv) override {
    return finish(network_->scatter(operation, send, recv));
  }
  Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks, void* recv,
                  const std::vector<Block>& recv_blocks) override {
    return finish(network_->alltoall(operation, send, send_blocks, recv, recv_blocks));
  }
  Status transfer(const std::vector<Transfer>& transfers) override { return finish(network_->transfer(transfers)); }
  Status adasum(const Operation& operation, const Span& data) override {
    return finish(network_->adasum(operation, data));
  }
  Status barrier(const Operation& operation) override {
    barrier_.announce(operation);
    barrier_.publish_arrival();
    Status done = barrier_.wait_for_peers(operation, 0);
    end_call(done);
    return done;
  }
  bool asks_for_time() const override { return true; }
  bool has_closed(int rank) const override { return network_->has_closed(rank); }
  void close() override {
    barrier_.give_up();
    network_->close();
  }

 private:
  void end_call(const Status& status) {
    if (status) {
      barrier_.end_call();
    } else {
      close();
    }
  }
  Status finish(Status status) {
    end_call(status);
    return status;
  }

  Group group_;
  std::shared_ptr<Segment> segment_;
  std::unique_ptr<Backend> network_;
  StepBarrier barrier_;
};

}  // namespace

std::unique_ptr<ShmBackend> make_shm_backend(const JobContext& job_context, const Group& group,
                                             std::shared_ptr<Segment> segment, std::unique_ptr<Backend> network) {
  return std::make_unique<ShmBackendImpl>(job_context, group, std::move(segment), std::move(network));
}

}  // namespace drun::runtime
