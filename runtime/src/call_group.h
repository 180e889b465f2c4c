// Calls that are not carried out where they are made: asynchronous ones, and those between drun_group_start and
// drun_group_end.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/call_queue.h"
#include "runtime/src/process.h"

namespace drun::runtime {

using CallBody = std::function<Status(Communicator&, const CallOptions&)>;

// Of calls that a group carries out together with their like: what they are, in place of a body.
struct GroupedAllreduce {
  Communicator::AllreduceCall buffers{};
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;
};

struct LaterCall {
  const char* function = "";
  drun_comm comm = DRUN_COMM_WORLD;
  CallOptions options;
  CallBody body;
  std::optional<GroupedAllreduce> allreduce;
  std::optional<Communicator::TransferCall> transfer;
  std::shared_ptr<Request> request;  // none: whoever ends the group has the result
};

// One call, in its turn. What it throws, out of memory that is, is a failure of the call, of which the others learn.
template <typename Body>
Status carry_out(Process& process, const char* function, drun_comm comm, const CallOptions& options, const Body& body) {
  auto all = process.communicator(function);
  if (!all) return tl::unexpected<Failure>(all.error());
  try {
    auto communicator = process.communicator(function, comm, options.timeout);
    if (!communicator) return tl::unexpected<Failure>(communicator.error());
    return body(**communicator, options);
  } catch (const std::exception& e) {
    return (*all)->fail(
        Failure{DRUN_ERROR_SYSTEM, std::string(function) + ": " + e.what(), (*all)->world().rank(), {}});
  }
}

// One after the other, or together where that makes sense; completes their requests. The first failure of those
// without one. Throws nothing.
Status carry_out_all(Process& process, CallQueue& queue, const std::vector<LaterCall>& calls);

}  // namespace drun::runtime
