// A communicator in NCCL: its calls are enqueued on a stream of ours, between events of the user's stream, and never
// wait for the device. docs/gpu.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/culprit.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/gpu/stream_wait.h"
#include "runtime/src/group.h"
#include "runtime/src/operation.h"
#include "runtime/src/patience.h"
#include "runtime/src/span.h"
#include "runtime/src/world.h"

namespace drun::runtime::gpu {

// How long NCCL may take to end what cannot go on; longer, and the process ends.
inline constexpr std::chrono::milliseconds kNcclEndTime{10'000};

struct NcclEnding;

// One thread at a time, which has the turn. After a failure it is aborted, and of no further use.
class NcclComm {
 public:
  // Collective among the members of `group`, within the call's time; `during`, which all of them make.
  static Outcome<std::unique_ptr<NcclComm>> create(const World& world, const Group& group, const Nccl& nccl,
                                                   Device& device, const Operation& during);
  // The communicator of a part of its members, by ncclCommSplit. All members make it at once, before any call, each for
  // its own part; parts do not overlap. `made` is there after a failure, too: it is to be aborted after this one,
  // whose split may still be writing to it.
  Status split(const Group& part, const Operation& during, std::unique_ptr<NcclComm>& made);
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // What NCCL has no reduction for goes another way.
  static bool can_reduce(const Operation& operation);

  // Device memory; arguments are checked. `stream`: the user's, after whose work the call begins, and which waits for
  // its end, at once or later. The result is of the enqueuing; what comes of the call itself is look()'s to say.
  struct Allreduce {
    Operation operation;
    UserStream stream;
    const void* send = nullptr;
    void* recv = nullptr;
  };
  Status allreduce(const std::vector<Allreduce>& calls);
  // In place where they are equal; they do not overlap otherwise. With the kernels, which all members have.
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
  // `meanwhile`: more that belongs to it, and may wait for the same peers.
  Status transfer(const std::vector<Transfer>& transfers, const std::vector<UserStream>& streams,
                  const std::function<Status()>& meanwhile);

  // NCCL may use it in place from here on, where all members have registered theirs. Else why not.
  std::string register_memory(void* memory, std::size_t n_bytes);
  // Ends that for what begins in these bytes, which nothing that is under way uses; else why not. NCCL may wait for
  // other ranks: if it does so for longer than a call may take, the process ends.
  std::string deregister(const void* memory, std::size_t n_bytes);
  // Whether some communicator of the process has registered what begins in these bytes. Any thread.
  static bool is_registered(const void* memory, std::size_t n_bytes);

  // Without waiting: calls that have ended get their time in the recorder. A failure is a call whose deadline has
  // passed, or what NCCL or the device say; it is published. Time for which this process was stopped does not count.
  Status look();
  // What the first call that is under way waits for, as look() has seen it: ranks of the job; nobody, if it waits for
  // its own GPU, or there is none. `number` tells it from other calls.
  struct Waiting {
    std::vector<int> peers;
    std::uint64_t number = 0;
  };
  Waiting waiting() const;
  // All members that are on our host, but us.
  std::vector<int> host_mates() const;
  // The program has freed the communicator.
  void release() { is_released_ = true; }
  bool is_released() const { return is_released_; }
  std::uint32_t comm() const { return group_.comm; }  // the number of the communicator that it is of
  int device() const { return device_.ordinal(); }
  bool is_idle() const { return pending_.empty(); }
  std::string pending_call() const { return pending_.empty() ? "" : name_of(pending_.front().operation); }
  // Ends what is under way on this device. Waits for the members on this host, who must abort, too; at most
  // kNcclEndTime, and then the process ends. With a graph that has calls of it, for which NCCL would wait for ever, it
  // is left behind instead, to a thread of ours.
  void abort();
  // Nothing is under way any more. On a host NCCL waits for all members: if they do not end in `wait`, that is left to
  // a thread of ours. With a graph it stays as it is.
  void end(std::chrono::milliseconds wait);
  // Nothing more is done with it, but that the others are told so, whose end waits for that: NCCL keeps what it has.
  void leave_behind();

 private:
  struct Pending {
    Operation operation;  // the first of those that were begun together
    Event begin;          // the user's streams have come so far
    Event end;
    std::vector<std::uint64_t> records;
    std::vector<int> peers;   // ranks of the job that it needs; none: all members
    std::uint64_t number;     // counts the calls
    Clock::duration stopped;  // of this process, before it began
  };
  NcclComm(const World& world, Group group, const Nccl& nccl, Device& device)
      : world_(world), group_(std::move(group)), nccl_(nccl), device_(device) {}
  using Enqueue = std::function<NcclResult(Stream stream)>;
  // The calls of `operations`, together: `enqueue` between the streams' events.
  Status run(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
             const Enqueue& enqueue, const std::function<Status()>& meanwhile = {});
  Status run(const Operation& operation, const UserStream& stream, const Enqueue& enqueue) {
    return run({&operation}, {stream}, enqueue);
  }
  // `steps`: what is enqueued, as a whole.
  using Steps = std::function<Status(Stream stream)>;
  Status run_steps(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                   const Steps& steps, bool needs_ours, const std::function<Status()>& meanwhile = {});
  // Where the call's work goes.
  struct Way {
    Stream stream;
    bool is_ours;
    bool is_captured;
  };
  Outcome<Way> begin_after(const std::vector<UserStream>& streams, const Operation& during, bool needs_ours);
  // `pending` is under way from here on, if it went well.
  Status end_before(Pending& pending, const std::vector<UserStream>& streams, const Way& way);
  Status wait_later(const UserStream& stream, const Operation& operation);
  Status run_recorded(Pending& pending, const std::vector<UserStream>& streams, const Steps& steps, bool needs_ours,
                      const std::function<Status()>& meanwhile);
  class AdasumSteps;
  std::vector<int> others() const;  // all members, but us
  std::vector<int> peers_of(const std::vector<const Operation*>& operations) const;
  std::vector<int> peers_of(const Pending& pending) const { return pending.peers.empty() ? others() : pending.peers; }
  // NCCL's calls in `calls`, as one.
  template <typename Calls>
  NcclResult grouped(const Calls& calls);
  // What NCCL says is bad may come of another rank's failure.
  tl::unexpected<Failure> explained(const Operation& operation, const char* function, NcclResult result);
  // A failure of it is published.
  Outcome<bool> is_reached(Event event, const Operation& operation);
  Status ours(Failure failure) const;  // published
  // A setup that fails is told to the others before they are waited for. `remedy`: what else helps.
  void publish(Failure& failure, const char* remedy = "") const;
  // How long NCCL may be in a call of a setup.
  static std::chrono::milliseconds longest(const Operation& during);
  // Until NCCL is no longer in progress.
  Status settle(const Operation& operation, const char* function);
  NcclResult reduction_of(const Operation& operation, NcclRedOp& op, bool& is_made);
  Status with_reduction(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                        const std::function<NcclResult(std::size_t i, NcclRedOp op, Stream ours)>& enqueue);
  tl::unexpected<Failure> failed(const std::string& during, const char* function, NcclResult result);
  tl::unexpected<Failure> driver_failed(const Operation& during, const char* function, DriverResult error) const {
    return driver_failure(device_.driver(), describe(during), function, error);
  }
  std::uint64_t record(const Operation& operation);
  void close(const Pending& pending, int status);  // its records and events
  void forget_pending(int status);
  void forget();  // the communicator, as it is
  // Nothing is under way: the rest is done by a thread of ours, for which we wait so long. With a graph that is less
  // than `what`: NCCL can't end before it, but need not know of memory any more.
  void leave_to_thread(void (*what)(const NcclEnding&), std::chrono::milliseconds wait);
  std::vector<void*> take_registered();  // NCCL's handles of memory, which are somebody else's to give back
  std::string who() const { return world_.name_of(world_.rank()); }

  const World& world_;
  Group group_;
  const Nccl& nccl_;
  Device& device_;
  NcclHandle comm_ = nullptr;
  std::deque<Pending> pending_;
  struct Registered {
    std::size_t n_bytes;
    void* handle;
  };
  std::map<std::uintptr_t, Registered> registered_;  // by address
  Patience patience_;                                // of setups
  WaitNote note_;
  std::uint64_t n_calls_ = 0;
  bool has_begun_ = false;  // the first call that is pending does not wait for its own GPU
  bool has_graph_ = false;  // some call was captured
  bool is_released_ = false;
  bool has_kernels_ = false;
};

}  // namespace drun::runtime::gpu
