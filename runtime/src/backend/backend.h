// Executes collectives on host memory among the members of a group, which are numbered from 0. Implemented over TCP,
// over shared memory within a host, and over both in layers. NCCL is not a Backend (gpu/nccl_comm.h). Arguments are
// already checked, and all data is in place, except for allreduce_from().
#pragma once

#include <vector>

#include "runtime/src/copy.h"
#include "runtime/src/failure.h"
#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime {

// A send or a receive.
struct Transfer {
  Operation operation;
  void* data = nullptr;  // a send only reads it
};

// One thread at a time. Must not be used after a failure.
class Backend {
 public:
  virtual ~Backend() = default;
  // The reductions get a part of the call's elements; all ranks ask for the same parts in the same order.
  virtual Status allreduce(const Operation& operation, const Span& data) = 0;
  // Allreduce of the data at `from`, of the size of `data`, which receives the result. They do not overlap, and `data`
  // is uninitialized.
  virtual Status allreduce_from(const Operation& operation, const char* from, const Span& data) {
    copy_bytes(data.data, from, data.n_bytes());
    return allreduce(operation, data);
  }
  // Member operation.root_here() gets the result; `data` of the others is undefined afterwards.
  virtual Status reduce(const Operation& operation, const Span& data) = 0;
  // `data` holds size blocks of equal counts. Afterwards the own block is the result, and the others are undefined.
  virtual Status reduce_scatter(const Operation& operation, const Span& data) = 0;
  // Broadcasts a part of the call's data; all ranks ask for the same parts in the same order.
  virtual Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) = 0;
  // `data` holds a block for each rank, the own one already in place.
  virtual Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) = 0;
  // Gathers a block of operation.count elements from each rank. `recv`, used at the root only, holds all blocks, the
  // own one already in place.
  virtual Status gather(const Operation& operation, const void* send, void* recv) = 0;
  // The reverse of gather(). `send` is used at the root only, whose own block is already in place.
  virtual Status scatter(const Operation& operation, const void* send, void* recv) = 0;
  // The own block is already in place.
  virtual Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks,
                          void* recv, const std::vector<Block>& recv_blocks) = 0;
  // Sends and receives, all at once, each with member operation.root alone. Those of a pair keep their order.
  virtual Status transfer(const std::vector<Transfer>& transfers) = 0;
  // Allreduce with Adasum.
  virtual Status adasum(const Operation& operation, const Span& data) = 0;
  virtual Status barrier(const Operation& operation) = 0;
  // True if allreduce(), allreduce_from() and barrier() read operation.clock themselves, before they wait for long.
  // Otherwise, and for all other calls, the start time must be known before the call.
  virtual bool asks_for_time() const { return false; }
  // True if that member has closed its connection with us, if there is one: it takes part in no further call.
  virtual bool has_closed(int member) const = 0;
  // Closes the backend after a failure elsewhere, so that other ranks notice.
  virtual void close() = 0;
};

}  // namespace drun::runtime
