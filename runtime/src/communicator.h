// All ranks of the job, ready for collectives: checks arguments, numbers the calls, remembers the first failure.
#pragma once

#include <memory>
#include <optional>

#include "runtime/src/backend/backend.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// One thread at a time.
class Communicator {
 public:
  // Collective. Alone, a job of size 1, it needs no backend.
  static Outcome<std::unique_ptr<Communicator>> create(World world);

  Status allreduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op);
  Status broadcast(void* data, std::size_t count, drun_dtype dtype, int root);
  Status allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype);
  Status barrier();

  const World& world() const { return world_; }

 private:
  explicit Communicator(World world) : world_(std::move(world)) {}
  Outcome<Operation> begin(OpKind kind, std::size_t count, drun_dtype dtype);
  Status finish(Status status);

  World world_;
  std::unique_ptr<Backend> backend_;
  std::uint64_t seq_ = 0;
  std::optional<Failure> broken_;
};

}  // namespace drun::runtime
