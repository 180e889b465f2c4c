// Deferred calls: asynchronous ones, and those between drun_group_start and drun_group_end.
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

// An allreduce that a group may carry out together with others, in place of a body.
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
  std::shared_ptr<Request> request;  // null: the end of the group returns the result
};

// Carries out one call, in its turn. Publishes an exception of `body`, which means out of memory, as a failure of the
// call.
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
        Failure{DRUN_ERROR_SYSTEM, std::string(function) + ": " + e.what(), (*all)->job_context().rank(), {}});
  }
}

// Carries out the calls one after the other, or together where they can be fused, and completes their requests. Returns
// the first failure of the calls without a request. Throws nothing.
Status carry_out_all(Process& process, CallQueue& queue, const std::vector<LaterCall>& calls);

}  // namespace drun::runtime
