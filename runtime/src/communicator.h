// Ranks that are ready for collectives: checks arguments, and numbers the calls.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/src/backend/backend.h"
#include "runtime/src/call_options.h"
#include "runtime/src/fabric.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/staging.h"
#include "runtime/src/world.h"

namespace drun::runtime {

namespace gpu {
class HostCopies;
class NcclComm;
struct NcclDecision;
}  // namespace gpu

// One thread at a time.
class Communicator {
 public:
  // All ranks of the job; collective.
  static Outcome<std::unique_ptr<Communicator>> create(World world);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Collective. Those with our colour, in the order of keys, then of ranks; null with a colour below 0.
  Outcome<std::unique_ptr<Communicator>> split(int colour, int key, const CallOptions& options = {});
  // Members that all know of each other without a word; collective among these. No timeout: the communicator's.
  // `function`: whose doing it is, for errors.
  Outcome<std::unique_ptr<Communicator>> among(Group group, std::chrono::milliseconds timeout, const char* function);
  Group local_group() const { return fabric_->local(); }
  Group cross_group() const { return fabric_->cross(); }
  std::uint32_t next_comm() const { return fabric_->next_comm; }
  std::uint32_t comm() const { return group_.comm; }
  int rank() const { return group_.own; }
  int size() const { return group_.size(); }

  Status allreduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op,
                   const CallOptions& options = {});
  // `recv` is used at the root alone.
  Status reduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op, int root,
                const CallOptions& options = {});
  Status reduce_scatter(const void* send, void* recv, std::size_t recv_count, drun_dtype dtype, drun_op op,
                        const CallOptions& options = {});
  Status broadcast(void* data, std::size_t count, drun_dtype dtype, int root, const CallOptions& options = {});
  Status allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const CallOptions& options = {});
  Status allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                    const std::size_t* recv_offsets, drun_dtype dtype, const CallOptions& options = {});
  // `recv` is used at the root alone.
  Status gather(const void* send, void* recv, std::size_t count, drun_dtype dtype, int root,
                const CallOptions& options = {});
  // `send` is used at the root alone.
  Status scatter(const void* send, void* recv, std::size_t count, drun_dtype dtype, int root,
                 const CallOptions& options = {});
  Status alltoall(const void* send, void* recv, std::size_t count, drun_dtype dtype, const CallOptions& options = {});
  Status alltoallv(const void* send, const std::size_t* send_counts, const std::size_t* send_offsets, void* recv,
                   const std::size_t* recv_counts, const std::size_t* recv_offsets, drun_dtype dtype,
                   const CallOptions& options = {});
  Status send(const void* data, std::size_t count, drun_dtype dtype, int peer, const CallOptions& options = {});
  Status recv(void* data, std::size_t count, drun_dtype dtype, int peer, const CallOptions& options = {});
  // Sends and receives, all at once.
  struct TransferCall {
    OpKind kind;
    void* data;  // of a send it is only read
    std::size_t count;
    drun_dtype dtype;
    int peer;
    CallOptions options;
  };
  Status transfer(const std::vector<TransferCall>& calls);
  // Allreduces of one type and reduction; small ones go in one message.
  struct AllreduceCall {
    const void* send;
    void* recv;
    std::size_t count;
    drun_memory memory = DRUN_MEMORY_AUTO;  // these three in place of those of the options
    void* stream = nullptr;
    gpu::StreamWait* later = nullptr;
  };
  static CallOptions with_memory_of(const AllreduceCall& call, CallOptions options) {
    options.memory = call.memory;
    options.stream = call.stream;
    options.later = call.later;
    return options;
  }
  Status allreduce_all(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                       const CallOptions& options = {});
  // Whether the arguments are such that the call could begin.
  Status check_allreduce(const AllreduceCall& call, drun_dtype dtype, drun_op op, const CallOptions& options) const;
  Status check_transfer(const TransferCall& call) const;
  Status barrier(const CallOptions& options = {});
  // Collective; see drun_register.
  Status register_memory(void* memory, std::size_t n_bytes, const CallOptions& options = {});
  // On all communicators, what begins in these bytes; nothing that is under way uses it.
  Status deregister(const void* memory, std::size_t n_bytes, const char* during) {
    return fabric_->deregister(memory, n_bytes, during);
  }

  // A call could not be carried out for a reason of our own: the others learn of it, and no further call works, on any
  // communicator.
  Status fail(Failure failure);
  // Nothing more will come of this rank.
  void leave();

  const World& world() const { return fabric_->world(); }
  // Now and then, once GPUs are in use: Fabric::look().
  void look() { fabric_->look(); }
  // Then what has failed, if anything has.
  Status look_for_failure() {
    look();
    return check_usable();
  }
  gpu::Context gpu_context() const { return fabric_->devices().context(); }  // nullptr: no GPU is in use over NCCL
  // "allreduce #3 'grad'", which is not over on a GPU, as far as look() has seen; "": nothing.
  std::string under_way() const { return fabric_->under_way(); }
  // Before leave(), and after it.
  Status finish_gpu() { return fabric_->finish_gpu(); }
  void end_gpu() { fabric_->end_gpu(); }
  bool is_idle() const;  // nothing is under way on GPUs, as far as look() has seen
  bool is_broken() const { return fabric_->broken().has_value(); }

 private:
  Communicator(std::shared_ptr<Fabric> fabric, Group group);
  static Outcome<std::unique_ptr<Communicator>> create(std::shared_ptr<Fabric> fabric, Group group,
                                                       const Operation& setup);
  Status check_usable() const {
    if (fabric_->broken()) return earlier_failure();
    return {};
  }
  [[gnu::cold]] tl::unexpected<Failure> earlier_failure() const;
  // All of them in one message, `count` elements together.
  Status allreduce_fused(std::vector<AllreduceCall> calls, std::size_t count, drun_dtype dtype, drun_op op,
                         const CallOptions& options);
  // Its memory is the host's by now.
  Status allreduce_on_host(const Operation& operation, const void* send, void* recv);
  // A failure of our own in a call that the others wait for, or count on.
  Status fail_in(const Status& why);
  // What came of a call once what it wrote is on the device.
  Status end(gpu::HostCopies& copies, Status done);
  // What came of `call`(NCCL), if it is NCCL that carries out a call with this memory (nullptr: none). The first such
  // call sets it up, together with all members. A failure is told to the others.
  template <typename Call>
  std::optional<Status> over_nccl(const Operation& operation, const CallOptions& options,
                                  std::initializer_list<const void*> memory, const Call& call) {
    if (operation.count == 0 && operation.kind != OpKind::kAlltoallv) return std::nullopt;  // the same on all members
    if (options.memory == DRUN_MEMORY_HOST || gpu::loaded_driver() == nullptr) return std::nullopt;
    auto nccl = choose_way(operation, options, memory);
    if (!nccl) return enqueued(tl::unexpected<Failure>(nccl.error()));
    if (*nccl == nullptr) return std::nullopt;
    return enqueued(call(**nccl));
  }
  // nullptr: the host's way.
  Outcome<gpu::NcclComm*> choose_way(const Operation& operation, const CallOptions& options,
                                     std::initializer_list<const void*> memory);
  Status set_up_nccl(const Operation& operation, const void* memory);
  // The local and the cross communicator's from that of all, as they decided.
  Status split_nccl(gpu::NcclComm& all, const gpu::NcclDecision& decision, const Operation& operation);
  // All of them in one call of NCCL's.
  std::optional<Status> allreduce_over_nccl(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                                            const CallOptions& options);
  Status transfer_over_host(const std::vector<TransferCall>& calls);
  Status transfer_with_nccl(const std::vector<TransferCall>& calls);  // with nccl_
  Outcome<Operation> begin_transfer(const TransferCall& call);
  void warn_of_host(const std::string& why);
  // Each member's word, of so many bytes at most, by member. No zeros are in them.
  Outcome<std::vector<std::string>> tell_all(std::string word, std::size_t n_bytes, const CallOptions& options);
  // What came of a call over NCCL: a failure is told to the others.
  Status enqueued(const Status& status);
  // The next call, before it has begun: what to say of it if it can't.
  // `asks_for_time`: whoever carries it out (Backend::asks_for_time()).
  Operation to_come(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options,
                    bool asks_for_time = false) const;
  Outcome<Operation> begin(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options,
                           bool asks_for_time = false);
  Status finish(Status status);
  // Reduces `most` elements at once. `reduce` works in place on what travels, which is the user's memory if that will
  // do. Without `recv` nobody wants the result here.
  template <typename Reduce>
  Status in_pieces(const Operation& operation, const void* send, void* recv, std::size_t most, const Reduce& reduce);

  std::shared_ptr<Fabric> fabric_;
  Group group_;
  std::unique_ptr<Backend> backend_;  // none if we are alone
  gpu::NcclComm* nccl_ = nullptr;     // the fabric's
  bool has_chosen_ = false;           // whether NCCL is used, which is then nccl_
  std::uint64_t seq_ = 0;
  std::map<int, std::uint64_t> n_sent_, n_received_;  // by peer
};

}  // namespace drun::runtime
