#include "runtime/src/gpu/nccl_comm.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"
#include "runtime/src/gpu/hang_guard.h"
#include "runtime/src/gpu/nccl_ending.h"

namespace drun::runtime::gpu {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAbortWithGraph{500}, kFinalizeTime{500};

}  // namespace

Outcome<std::unique_ptr<NcclComm>> NcclComm::create(const JobContext& job_context, const Group& group, const Nccl& nccl,
                                                    Device& device, const Operation& during) {
  const std::string what = "setup of NCCL for " + name_of(during);
  std::unique_ptr<NcclComm> result(new NcclComm(job_context, group, nccl, device));
  // The key is the same on all members and differs from those of other communicators: the local communicators of all
  // hosts have the same number, so the key has the first member's rank.
  const std::string key = own_key("nccl/" + std::to_string(group.comm) + "/" + std::to_string(group.ranks[0]));
  const auto left = std::chrono::duration_cast<milliseconds>(during.deadline() - Clock::now());
  const auto id = job_context.client->nccl_id(
      key, 0, group.ranks[0],
      [&]() -> Result<std::string> {
        NcclId made{};
        const auto error = nccl.GetUniqueId(&made);
        if (error == kNcclSuccess) return std::string(made.bytes, sizeof made.bytes);
        return drun::fail(Errc::kIo, std::string("ncclGetUniqueId: ") + nccl.GetErrorString(error));
      },
      std::max(left, milliseconds(1)), job_context.interrupt_fd);
  if (!id) {
    if (auto alive = check_alive(job_context, what); !alive) return tl::unexpected<Failure>(alive.error());
    return tl::unexpected<Failure>(from_error(id.error(), what));
  }
  NcclId bytes{};
  std::memcpy(bytes.bytes, id->data(), std::min(id->size(), sizeof bytes.bytes));
  ContextScope scope;
  if (const auto error = scope.enter(device.driver(), device.context()); error != kSuccess) {
    return driver_failure(device.driver(), what, "cuCtxPushCurrent", error);
  }
  NcclConfig config;
  NcclResult begun = kNcclSuccess;
  {
    const CallWatch::Call watched(result->watch_, during, "ncclCommInitRankConfig");
    begun = nccl.CommInitRankConfig(&result->comm_, group.size(), bytes, group.own, &config);
  }
  Status ready = is_begun(begun) ? result->finish_begun(begun, during, "ncclCommInitRankConfig")
                                 : Status(result->wait_.failed(result->comm_, what, "ncclCommInitRankConfig", begun));
  if (ready) return result;
  result->publish(ready.error());
  result->abort(ready.error().text);
  return tl::unexpected<Failure>(ready.error());
}

void NcclComm::publish(Failure& failure, const char* remedy) const {
  // For example, a driver that is too old for this NCCL. A failure of another rank already has its hint.
  if (failure.status == DRUN_ERROR_SYSTEM && failure.rank == job_context_.rank()) {
    failure.text +=
        std::string(" (hint: ") + remedy + "DRUN_GPU=0 on all ranks sends data of GPUs through the host, without NCCL)";
  }
  publish_failure(job_context_, failure);
}

milliseconds NcclComm::longest(const Operation& during) {
  const auto left = std::chrono::duration_cast<milliseconds>(during.deadline() - Clock::now());
  return std::max(left, milliseconds(0)) + kNcclEndTime;
}

// A rank alone in its part passes a color, too: with NCCL_SPLIT_NOCOLOR, NCCL (at least up to 2.30) writes to the null
// new communicator if the split fails.
Status NcclComm::split(const Group& part, const Operation& during, std::unique_ptr<NcclComm>& made) {
  constexpr const char* kFunction = "ncclCommSplit";
  const std::string what = "setup of NCCL for " + name_of(during);
  made.reset(new NcclComm(job_context_, part, nccl_, device_));
  made->has_kernels_ = has_kernels_;
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    return publish_own_failure(job_context_, driver_failure(device_.driver(), what, "cuCtxPushCurrent", error).value());
  }
  NcclResult begun = kNcclSuccess;
  {
    const CallWatch::Call watched(watch_, during, kFunction);
    begun = nccl_.CommSplit(comm_, part.ranks[0], part.own, &made->comm_, nullptr);
  }
  Status ready =
      is_begun(begun) ? finish_begun(begun, during, kFunction) : Status(wait_.failed(comm_, what, kFunction, begun));
  if (ready && made->comm_ == nullptr) {
    ready = failure(DRUN_ERROR_SYSTEM, what + ": ncclCommSplit gave no communicator", job_context_.rank(),
                    job_context_.host_of(job_context_.rank()));
  }
  if (ready) ready = made->finish_begun(begun, during, kFunction);
  if (!ready) publish(ready.error(), "DRUN_NCCL_SPLIT=0 goes without this; ");
  return ready;
}

NcclComm::~NcclComm() { end(milliseconds(0)); }

std::vector<int> NcclComm::host_mates() const {
  const auto& host_of = job_context_.client->welcome().host_index_of_rank;
  std::vector<int> mates = group_.others();
  mates.erase(std::remove_if(mates.begin(), mates.end(),
                             [&](int rank) {
                               return host_of[static_cast<std::size_t>(rank)] !=
                                      host_of[static_cast<std::size_t>(job_context_.rank())];
                             }),
              mates.end());
  return mates;
}

void NcclComm::abort(const std::string& why) {
  if (comm_ == nullptr) return;
  calls_.forget(DRUN_ERROR_ABORTED);
  const NcclHandle comm = std::exchange(comm_, nullptr);
  (void)memory_.take_all();  // NCCL's abort deregisters them
  // NCCL first ends work in progress, and then waits for the end of the graph.
  if (has_graph_) {
    return end_in_thread({&nccl_, &device_.driver(), device_.context(), comm, {}}, NcclEnd::kAbort, kAbortWithGraph);
  }
  ContextScope scope;
  (void)scope.enter(device_.driver(), device_.context());
  const HangGuard guard(who() + ": " + why, "ncclCommAbort", kNcclEndTime);
  nccl_.CommAbort(comm);
}

void NcclComm::end(milliseconds wait) { leave_to_thread(NcclEnd::kDestroy, wait); }

void NcclComm::leave_behind() { leave_to_thread(NcclEnd::kFinalize, kFinalizeTime); }

void NcclComm::leave_to_thread(NcclEnd how, milliseconds wait) {
  if (comm_ == nullptr) return;
  calls_.forget(DRUN_OK);
  end_in_thread({&nccl_, &device_.driver(), device_.context(), std::exchange(comm_, nullptr), memory_.take_all()},
                has_graph_ ? NcclEnd::kDeregister : how, wait);
}

void NcclComm::forget() {
  calls_.forget(DRUN_OK);
  comm_ = nullptr;
  (void)memory_.take_all();
}

std::string NcclComm::register_memory(void* memory, std::size_t n_bytes) {
  return comm_ == nullptr ? "NCCL is not used any more" : memory_.add(comm_, memory, n_bytes);
}

Status NcclComm::finish_begun(NcclResult begun, const Operation& operation, const char* function) {
  return begun == kNcclInProgress ? wait_.settle(comm_, operation, function) : Status();
}

Status NcclComm::call_nccl(const Operation& operation, Stream stream, Enqueue enqueue) {
  NcclResult begun = kNcclSuccess;
  {
    const CallWatch::Call watched(watch_, operation, "NCCL");
    begun = enqueue(stream);
  }
  if (!is_begun(begun)) return wait_.explained(comm_, operation, "NCCL", begun);
  return finish_begun(begun, operation, "NCCL");
}

// Not under the watch, which uses the client that `meanwhile` uses.
Status NcclComm::call_nccl_beside(const Operation& operation, Stream stream, Enqueue enqueue,
                                  const std::function<Status()>& meanwhile) {
  NcclResult begun = kNcclSuccess;
  DriverResult entered = kSuccess;
  std::thread nccl;
  {
    const BlockedSignals blocked;
    nccl = std::thread([&] {
      ContextScope scope;
      entered = scope.enter(device_.driver(), device_.context());
      if (entered == kSuccess) begun = enqueue(stream);
    });
  }
  const Status other = meanwhile();
  {
    const HangGuard guard(who() + ": " + name_of(operation), "NCCL", longest(operation));
    nccl.join();
  }
  if (!other) return other;
  if (entered != kSuccess) return driver_failure(device_.driver(), operation, "cuCtxPushCurrent", entered);
  if (!is_begun(begun)) return wait_.explained(comm_, operation, "NCCL", begun);
  return finish_begun(begun, operation, "NCCL");
}

Status NcclComm::run(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                     Enqueue enqueue, const std::function<Status()>& meanwhile) {
  const auto steps = [&](Stream stream) {
    return meanwhile ? call_nccl_beside(*operations[0], stream, enqueue, meanwhile)
                     : call_nccl(*operations[0], stream, enqueue);
  };
  // Another thread has other streams of its own, so it gets ours.
  return run_steps(operations, streams, steps, meanwhile != nullptr);
}

Status NcclComm::run_steps(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                           Steps steps, bool needs_ours) {
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    return driver_failure(device_.driver(), *operations[0], "cuCtxPushCurrent", error);
  }
  NcclCall call = calls_.begin(operations);
  auto done = run_recorded(call, streams, steps, needs_ours);
  if (!done) calls_.close(call, done.error().status);
  return done;
}

Outcome<StreamPlan> NcclComm::begin_on_stream(NcclCall& call, const std::vector<UserStream>& streams, bool needs_ours) {
  const Operation& first = call.operation;
  const CallWatch::Call watched(watch_, first, "the driver");
  auto plan = begin_after(device_, streams, first, needs_ours);
  if (!plan) return plan;
  auto error = calls_.take_events(call);
  if (error != kSuccess) return driver_failure(device_.driver(), first, "cuEventCreate", error);
  error = device_.driver().event_record(call.begin, plan->stream);
  if (error != kSuccess) return driver_failure(device_.driver(), first, "cuEventRecord", error);
  return plan;
}

Status NcclComm::end_on_stream(const NcclCall& call, const std::vector<UserStream>& streams, const StreamPlan& plan) {
  const CallWatch::Call watched(watch_, call.operation, "the driver");
  return end_before(device_, streams, plan, call.end, call.operation);
}

Status NcclComm::run_recorded(NcclCall& call, const std::vector<UserStream>& streams, Steps steps, bool needs_ours) {
  const auto plan = begin_on_stream(call, streams, needs_ours);
  if (!plan) return tl::unexpected<Failure>(plan.error());
  if (auto ok = steps(plan->stream); !ok) return ok;
  if (auto ok = end_on_stream(call, streams, *plan); !ok) return ok;
  has_graph_ = has_graph_ || plan->is_captured;
  if (plan->is_captured) {  // it is part of a graph, and can't be polled
    calls_.close(call, DRUN_OK);
    return {};
  }
  device_.set_last_call(call.end, plan->stream);
  calls_.add(std::move(call));
  return {};
}

Status NcclComm::poll() {
  if (comm_ == nullptr || calls_.empty()) return {};
  const Operation first = calls_.first();
  const auto can_poll = calls_.poll_events();
  if (!can_poll) return tl::unexpected<Failure>(can_poll.error());
  if (!*can_poll) {
    forget();
    return {};
  }
  // Checks calls that have ended, too: an error may have ended them.
  NcclResult state = kNcclSuccess;
  if (nccl_.CommGetAsyncError(comm_, &state) == kNcclSuccess && !is_begun(state)) {
    auto failure = wait_.explained(comm_, calls_.empty() ? first : calls_.first(), "NCCL", state).value();
    publish_failure(job_context_, failure);
    return tl::unexpected<Failure>(std::move(failure));
  }
  return calls_.check_deadline();
}

}  // namespace drun::runtime::gpu
