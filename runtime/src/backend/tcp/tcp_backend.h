// Collectives on host memory over TCP between the members of a group.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"

namespace drun::runtime {

// An allreduce in place whose data becomes ready, and is returned, piece by piece. Its caller does other work in
// between, and calls advance() meanwhile.
class PiecewiseAllreduce {
 public:
  virtual ~PiecewiseAllreduce() = default;
  virtual void give(std::size_t n_pieces) = 0;  // the first `n_pieces` are ready
  // Moves data without blocking. Returns the time for which the caller may do other work.
  virtual Outcome<std::chrono::microseconds> advance() = 0;
  virtual Status wait_for(std::size_t n_pieces) = 0;  // the first `n_pieces`, which are only read from then on
  virtual Status wait_for_end() = 0;                  // afterwards all of the data may be written
};

class TcpBackend : public Backend {
 public:
  // `pieces` have whole elements of `data` and do not overlap; their number and sizes are the same on all ranks.
  // `divisor`: for averages. The backend makes no other call before its end.
  virtual std::unique_ptr<PiecewiseAllreduce> begin_allreduce(const Operation& operation, const Span& data,
                                                              const std::vector<Block>& pieces, int divisor) = 0;
};

// `job_context` must outlive the backend.
std::unique_ptr<TcpBackend> make_tcp_backend(const JobContext& job_context, std::shared_ptr<Connections> links,
                                             Group group);

}  // namespace drun::runtime
