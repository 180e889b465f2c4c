// Collectives on host memory over TCP between the members of a group.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/tcp/links.h"
#include "runtime/src/group.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// An allreduce in place whose data becomes ready, and is wanted back, piece by piece. Its caller does something else in
// between, and gives the network time meanwhile.
class PiecewiseAllreduce {
 public:
  virtual ~PiecewiseAllreduce() = default;
  virtual void give(std::size_t n_pieces) = 0;  // the first so many are ready
  // Moves what moves without a wait. Returns for how long the caller may do something else.
  virtual Outcome<std::chrono::microseconds> advance() = 0;
  virtual Status wait_for(std::size_t n_pieces) = 0;  // the first so many, which are only read from then on
  virtual Status wait_for_end() = 0;                  // after it all of the data may be written to
};

class TcpBackend : public Backend {
 public:
  // `pieces`: whole elements of `data`, none over another; as many and of the same sizes on all ranks. `divisor`: of
  // averages. The backend makes no other call before its end.
  virtual std::unique_ptr<PiecewiseAllreduce> begin_allreduce(const Operation& operation, const Span& data,
                                                              const std::vector<Block>& pieces, int divisor) = 0;
};

// `world` outlives the backend.
std::unique_ptr<TcpBackend> make_tcp_backend(const World& world, std::shared_ptr<Links> links, Group group);

}  // namespace drun::runtime
