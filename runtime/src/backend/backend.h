// The seam under the communicator: something that can carry out collectives. TCP is the first; shared memory inside a
// host and NCCL on GPUs stand beside it later. Arguments are already checked, and `recv` already holds what is in
// place, so that a backend only knows data in place.
#pragma once

#include <cstddef>

#include "runtime/src/failure.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

// One thread at a time. After a failure it is not used any more.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Status allreduce(const Operation& operation, void* data) = 0;
  virtual Status broadcast(const Operation& operation, void* data) = 0;
  // `data`: size blocks of operation.count elements, the own block in its place.
  virtual Status allgather(const Operation& operation, void* data) = 0;
  virtual Status barrier(const Operation& operation) = 0;
  // Whether that rank is known to be gone: it takes part in nothing more.
  virtual bool has_left(int rank) const = 0;
  // After a failure elsewhere: others shall notice.
  virtual void close() = 0;
};

}  // namespace drun::runtime
