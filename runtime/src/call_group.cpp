#include "runtime/src/call_group.h"

#include <exception>
#include <string>

namespace drun::runtime {
namespace {

bool same_allreduce(const LaterCall& a, const LaterCall& b) {
  return a.allreduce && b.allreduce && a.comm == b.comm && a.allreduce->dtype == b.allreduce->dtype &&
         a.allreduce->op == b.allreduce->op && a.options.prescale == b.options.prescale &&
         a.options.postscale == b.options.postscale;
}

bool same_kind(const LaterCall& a, const LaterCall& b) {
  return same_allreduce(a, b) || (a.transfer && b.transfer && a.comm == b.comm);
}

// `first` to before `last` are of one kind.
Status carry_out_run(Process& process, const LaterCall* first, const LaterCall* last) {
  CallOptions options = first->options;
  if (first->transfer) {
    return carry_out(process, first->function, first->comm, options, [&](Communicator& comm, const CallOptions&) {
      std::vector<Communicator::TransferCall> transfers;
      for (const auto* call = first; call != last; ++call) {
        transfers.push_back(*call->transfer);
        transfers.back().options = call->options;
      }
      return comm.transfer(transfers);
    });
  }
  if (!first->allreduce) return carry_out(process, first->function, first->comm, options, first->body);
  if (last - first > 1 && !options.name.empty()) options.name += " and " + std::to_string(last - first - 1) + " more";
  return carry_out(process, first->function, first->comm, options, [&](Communicator& comm, const CallOptions& call) {
    std::vector<Communicator::AllreduceCall> buffers;
    for (const auto* one = first; one != last; ++one) buffers.push_back(one->allreduce->buffers);
    return comm.allreduce_all(buffers, first->allreduce->dtype, first->allreduce->op, call);
  });
}

}  // namespace

Status carry_out_all(Process& process, CallQueue& queue, const std::vector<LaterCall>& calls) {
  Status result;
  const LaterCall* const end = calls.data() + calls.size();
  for (const LaterCall* first = calls.data(); first != end;) {
    const LaterCall* last = first + 1;
    while (last != end && same_kind(*first, *last)) ++last;
    Status done;
    try {
      done = carry_out_run(process, first, last);
    } catch (const std::exception& e) {
      done = failure(DRUN_ERROR_SYSTEM, e.what());
    }
    for (; first != last; ++first) {
      if (first->request) {
        queue.complete(*first->request, done);
      } else if (result && !done) {
        result = done;
      }
    }
  }
  return result;
}

}  // namespace drun::runtime
