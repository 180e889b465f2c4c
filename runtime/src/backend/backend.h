// The seam under the communicator: something that can carry out collectives between the members of a group, who are
// counted from 0. TCP, shared memory inside a host, and both of them in layers; NCCL on GPUs comes later. Arguments are
// already checked, and `recv` already holds what is in place, so that a backend knows data in place, but for
// allreduce_from().
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
  void* data = nullptr;  // of a send it is only read
};

// One thread at a time. After a failure it is not used any more.
class Backend {
 public:
  virtual ~Backend() = default;
  // The reductions are given a part of the call's elements; all ranks ask for the same parts in the same order.
  virtual Status allreduce(const Operation& operation, const Span& data) = 0;
  // The same of what is at `from`, as much as `data` has room for; they do not overlap. `data` holds nothing yet.
  virtual Status allreduce_from(const Operation& operation, const char* from, const Span& data) {
    copy_bytes(data.data, from, data.n_bytes());
    return allreduce(operation, data);
  }
  // Member operation.root_here() has the result; what the others' `data` holds afterwards is of no use.
  virtual Status reduce(const Operation& operation, const Span& data) = 0;
  // `data`: size blocks of equal counts; afterwards the own block is the result, the others are of no use.
  virtual Status reduce_scatter(const Operation& operation, const Span& data) = 0;
  // A part of the call's data; all ranks ask for the same parts in the same order.
  virtual Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) = 0;
  // A block of `data` for each rank, the own one in its place.
  virtual Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) = 0;
  // A block of operation.count elements of each rank. `recv`: all of them, the own one in its place, at the root alone.
  virtual Status gather(const Operation& operation, const void* send, void* recv) = 0;
  // The other way: `send` at the root alone, whose own block is already where it shall be.
  virtual Status scatter(const Operation& operation, const void* send, void* recv) = 0;
  // The own block is already where it shall be.
  virtual Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks,
                          void* recv, const std::vector<Block>& recv_blocks) = 0;
  // Sends and receives, each with member operation.root alone, all at once. Those of a pair go in their order.
  virtual Status transfer(const std::vector<Transfer>& transfers) = 0;
  // An allreduce that is Adasum.
  virtual Status adasum(const Operation& operation, const Span& data) = 0;
  virtual Status barrier(const Operation& operation) = 0;
  // Whether allreduce(), allreduce_from() and barrier() ask operation.clock for the time themselves, before they wait
  // for long. If not, it is to be known before, as it is for all other calls.
  virtual bool asks_for_time() const { return false; }
  // Whether that member has closed its connection with us, if there is one: it takes part in nothing more.
  virtual bool has_closed(int member) const = 0;
  // After a failure elsewhere: others shall notice.
  virtual void close() = 0;
};

}  // namespace drun::runtime
