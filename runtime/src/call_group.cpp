#include "runtime/src/call_group.h"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "base/wording.h"

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

// "a, b and 3 more": as many names as fit in kNameBytes.
std::string name_of_group(const LaterCall* calls, const std::vector<std::size_t>& members) {
  constexpr std::size_t kRoomForRest = sizeof " and 1000000 more";
  std::string result;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string& name = calls[members[i]].options.name;
    if (i > 0 && (name.empty() || result.size() + 2 + name.size() + kRoomForRest > kNameBytes)) {
      const std::string rest = " and " + std::to_string(members.size() - i) + " more";
      return std::string(cut_text(result, kNameBytes - rest.size())) + rest;
    }
    if (name.empty()) return "";
    result += (i > 0 ? ", " : "") + name;
  }
  return result;
}

// Carries out `first` to before `last`, which are of one kind. Returns the result of each: a call with wrong arguments
// does not keep the others from being carried out together.
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
          for (std::size_t i = 1; i < good.size(); ++i) {
            const CallOptions& other = first[good[i]].options;
            together.names = digest_of_names(together.names, other.names);
            together.timeout = std::max(on.timeout_of(together), on.timeout_of(other));  // of those over NCCL
          }
          if (good.size() > 1) together.name = name_of_group(first, good);
          std::vector<Communicator::AllreduceCall> buffers;
          for (const std::size_t i : good) {
            buffers.push_back(first[i].allreduce->buffers);
            buffers.back().memory = first[i].options.memory;
            buffers.back().stream = first[i].options.stream;
            buffers.back().later = first[i].options.later;
            buffers.back().timeout = on.timeout_of(first[i].options);
          }
          return on.allreduce_all(buffers, kind.dtype, kind.op, together);
        });
  };
  // The failure of a single call, or one that keeps the whole run from being carried out.
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
