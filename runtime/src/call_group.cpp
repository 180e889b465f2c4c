#include "runtime/src/call_group.h"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

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

// `first` to before `last` are of one kind. The result of each: one whose arguments are wrong does not keep the others
// from being carried out together.
std::vector<Status> carry_out_run(Process& process, const LaterCall* first, const LaterCall* last) {
  std::vector<Status> results(static_cast<std::size_t>(last - first));
  const auto carry_out_each = [&](Communicator& comm, auto check, auto carry_out_together) -> Status {
    std::vector<std::size_t> good;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if ((results[i] = check(comm, first[i]))) good.push_back(i);
    }
    if (good.empty()) return {};
    const Status done = carry_out_together(comm, good);
    for (const std::size_t i : good) results[i] = done;
    return {};
  };
  const auto body = [&](Communicator& comm, const CallOptions& call) -> Status {
    if (first->transfer) {
      const auto transfer_of = [](const LaterCall& one) {
        auto transfer = *one.transfer;
        transfer.options = one.options;
        return transfer;
      };
      return carry_out_each(
          comm, [&](Communicator& on, const LaterCall& one) { return on.check_transfer(transfer_of(one)); },
          [&](Communicator& on, const std::vector<std::size_t>& good) {
            std::vector<Communicator::TransferCall> transfers;
            for (const std::size_t i : good) transfers.push_back(transfer_of(first[i]));
            return on.transfer(transfers);
          });
    }
    if (!first->allreduce) return first->body(comm, call);
    const auto& kind = *first->allreduce;
    return carry_out_each(
        comm,
        [&](Communicator& on, const LaterCall& one) {
          return on.check_allreduce(one.allreduce->buffers, kind.dtype, kind.op, one.options);
        },
        [&](Communicator& on, const std::vector<std::size_t>& good) {
          CallOptions together = first[good.front()].options;
          if (good.size() > 1 && !together.name.empty()) {
            together.name += " and " + std::to_string(good.size() - 1) + " more";
          }
          std::vector<Communicator::AllreduceCall> buffers;
          for (const std::size_t i : good) {
            buffers.push_back(first[i].allreduce->buffers);
            buffers.back().memory = first[i].options.memory;
            buffers.back().stream = first[i].options.stream;
            buffers.back().later = first[i].options.later;
          }
          return on.allreduce_all(buffers, kind.dtype, kind.op, together);
        });
  };
  // Of a call by itself; else only what keeps all of them from being carried out.
  if (const Status done = carry_out(process, first->function, first->comm, first->options, body); !done) {
    std::fill(results.begin(), results.end(), done);
  }
  return results;
}

}  // namespace

Status carry_out_all(Process& process, CallQueue& queue, const std::vector<LaterCall>& calls) {
  Status result;
  const LaterCall* const end = calls.data() + calls.size();
  for (const LaterCall* first = calls.data(); first != end;) {
    const LaterCall* last = first + 1;
    while (last != end && same_kind(*first, *last)) ++last;
    std::vector<Status> results;
    Status all;
    try {
      results = carry_out_run(process, first, last);
    } catch (const std::exception& e) {
      all = failure(DRUN_ERROR_SYSTEM, e.what());
    }
    for (std::size_t i = 0; first != last; ++first, ++i) {
      const Status& done = all ? results[i] : all;
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
