// A communicator of NCCL. Its calls are enqueued on the user's stream, or on ours between events of the user's streams,
// and do not wait for the device. Only a setup, and the first call, wait in NCCL for the members: CallWatch looks at
// the job meanwhile. docs/gpu.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "runtime/src/backend/backend.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/call_watch.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_calls.h"
#include "runtime/src/gpu/nccl_ending.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/gpu/nccl_memory.h"
#include "runtime/src/gpu/nccl_wait.h"
#include "runtime/src/gpu/stream_order.h"
#include "runtime/src/gpu/stream_wait.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime::gpu {

// One thread at a time: the one whose turn it is. After a failure it is aborted and can't be used.
class NcclComm {
 public:
  // Collective among the members of `group`, within the timeout of `during`, the call that needs it, which all members
  // make.
  static Outcome<std::unique_ptr<NcclComm>> create(const JobContext& job_context, const Group& group, const Nccl& nccl,
                                                   Device& device, const Operation& during);
  // Makes the communicator of a part of the members, by ncclCommSplit. All members call it at the same time, before any
  // other call, each for its own part; parts do not overlap. `made` is set after a failure, too: abort it after this
  // one, whose split may still be writing to it.
  Status split(const Group& part, const Operation& during, std::unique_ptr<NcclComm>& made);
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // The collectives (nccl_collectives.cpp). All take device memory and valid arguments. The call is ordered after the
  // work of `stream`, the user's, which waits for the end of the call, at once or later. The result is that of
  // enqueuing; poll() returns the failure of the call itself.
  struct Allreduce {
    Operation operation;
    UserStream stream;
    const void* send = nullptr;
    void* recv = nullptr;
  };
  Status allreduce(const std::vector<Allreduce>& calls);
  // In place if `send` and `recv` are equal; otherwise they must not overlap. Needs the kernels on all members.
  Status adasum(const Operation& operation, const UserStream& stream, const void* send, void* recv);
  bool can_adasum() const { return has_kernels_; }
  void have_kernels(bool all_have) { has_kernels_ = all_have; }
  Status reduce(const Operation& operation, const UserStream& stream, const void* send, void* recv);
  Status reduce_scatter(const Operation& operation, const UserStream& stream, const void* send, void* recv);
  Status broadcast(const Operation& operation, const UserStream& stream, void* data);
  Status allgather(const Operation& operation, const UserStream& stream, const void* send, void* recv);
  Status allgatherv(const Operation& operation, const UserStream& stream, const void* send, void* recv,
                    const std::vector<Block>& blocks);
  Status gather(const Operation& operation, const UserStream& stream, const void* send, void* recv);
  Status scatter(const Operation& operation, const UserStream& stream, const void* send, void* recv);
  Status alltoall(const Operation& operation, const UserStream& stream, const void* send,
                  const std::vector<Block>& send_blocks, void* recv, const std::vector<Block>& recv_blocks);
  // `meanwhile`: other work that belongs to the transfer and may wait for the same peers. May be empty; else NCCL is
  // called in a thread of its own.
  Status transfer(const std::vector<Transfer>& transfers, const std::vector<UserStream>& streams,
                  const std::function<Status()>& meanwhile);

  // Registers memory, which NCCL may use in place from here on if all members have registered theirs. Returns the
  // reason if that fails, else "".
  std::string register_memory(void* memory, std::size_t n_bytes);
  // Deregisters memory that begins in these bytes; no work in progress may use it. Returns the reason if that fails,
  // else "". NCCL may wait for other ranks: if it waits for longer than a call may take, the process ends.
  std::string deregister(const void* memory, std::size_t n_bytes) { return memory_.remove(comm_, memory, n_bytes); }

  // Polls the calls in progress, without waiting: records the end of those that have ended. Returns, and publishes, a
  // failure if the deadline of a call has passed, or NCCL or the device report an error. Time for which this process
  // was stopped does not count.
  Status poll();
  // For whom the first call in progress waits, as poll() has seen it.
  using Waiting = NcclCalls::Waiting;
  Waiting waiting() const { return calls_.waiting(); }
  // The other members on this rank's host.
  std::vector<int> host_mates() const;
  // The program has freed the communicator.
  void release() { is_released_ = true; }
  bool is_released() const { return is_released_; }
  std::uint32_t comm() const { return group_.comm; }  // number of the communicator that it belongs to
  int device() const { return device_.ordinal(); }
  bool is_idle() const { return calls_.empty(); }
  std::string pending_call() const { return calls_.empty() ? "" : name_of(calls_.first()); }
  // Ends the work in progress on this device. Waits for the members on this host, which must abort, too, for at most
  // kNcclEndTime; then the process ends, with an error that says `why`, too. If a graph has calls of the communicator,
  // for which NCCL would wait forever, a thread of ours aborts it instead.
  void abort(const std::string& why);
  // Ends the communicator when no work is in progress. On a host NCCL waits for all members: if they do not end within
  // `wait`, a thread of ours goes on. With a graph only its memory is deregistered.
  void end(std::chrono::milliseconds wait);
  // Finalizes the communicator, so that peers whose end waits for it can finish, but does not destroy it: NCCL keeps
  // its resources.
  void leave_behind();

 private:
  NcclComm(const JobContext& job_context, Group group, const Nccl& nccl, Device& device)
      : job_context_(job_context),
        group_(std::move(group)),
        nccl_(nccl),
        device_(device),
        wait_(job_context, group_, nccl),
        watch_(job_context, group_),
        calls_(job_context, group_, device, watch_),
        memory_(job_context, nccl, device) {}
  using Enqueue = FunctionRef<NcclResult(Stream stream)>;
  // Calls NCCL, under the watch, and waits until NCCL has done it.
  Status call_nccl(const Operation& operation, Stream stream, Enqueue enqueue);
  // The same in a thread of ours, with `meanwhile` in this one: NCCL may wait for a peer that waits for `meanwhile`.
  Status call_nccl_beside(const Operation& operation, Stream stream, Enqueue enqueue,
                          const std::function<Status()>& meanwhile);
  // Returns once NCCL has done what a function of its own began.
  Status finish_begun(NcclResult begun, const Operation& operation, const char* function);
  // Runs the calls of `operations` together: `enqueue`, between events of the streams.
  Status run(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams, Enqueue enqueue,
             const std::function<Status()>& meanwhile = {});
  Status run(const Operation& operation, const UserStream& stream, Enqueue enqueue) {
    return run({&operation}, {stream}, enqueue);
  }
  // `steps` enqueues all of the work. `needs_ours`: it must go to our stream.
  using Steps = FunctionRef<Status(Stream stream)>;
  Status run_steps(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams, Steps steps,
                   bool needs_ours);
  Status run_recorded(NcclCall& call, const std::vector<UserStream>& streams, Steps steps, bool needs_ours);
  // The driver's calls before and after the steps, under the watch.
  Outcome<StreamPlan> begin_on_stream(NcclCall& call, const std::vector<UserStream>& streams, bool needs_ours);
  Status end_on_stream(const NcclCall& call, const std::vector<UserStream>& streams, const StreamPlan& plan);
  // Publishes the failure of a setup, before the other members are waited for. `remedy`: an additional hint.
  void publish(Failure& failure, const char* remedy = "") const;
  // Limit for one of NCCL's calls that CallWatch does not watch.
  static std::chrono::milliseconds longest(const Operation& during);
  struct Elements {
    std::size_t first, count;
  };
  // `enqueue` gives NCCL elements of operation i.
  Status with_reduction(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                        FunctionRef<NcclResult(std::size_t i, Elements part, NcclRedOp op, Stream ours)> enqueue);
  void forget();  // leaves NCCL's communicator as it is
  // No work is in progress: a thread of ours carries out `how`, and we wait for it for at most `wait`. With a graph it
  // only deregisters memory, because NCCL can't end before the graph.
  void leave_to_thread(NcclEnd how, std::chrono::milliseconds wait);
  std::string who() const { return job_context_.name_of(job_context_.rank()); }

  const JobContext& job_context_;
  Group group_;
  const Nccl& nccl_;
  Device& device_;
  NcclHandle comm_ = nullptr;
  NcclWait wait_;
  CallWatch watch_;
  NcclCalls calls_;
  NcclMemory memory_;
  bool has_graph_ = false;  // a call was captured
  bool is_released_ = false;
  bool has_kernels_ = false;
};

}  // namespace drun::runtime::gpu
