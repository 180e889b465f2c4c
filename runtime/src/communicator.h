// A group of ranks that call collectives together. Checks arguments and numbers the calls.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/src/backend/backend.h"
#include "runtime/src/call_options.h"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/host_copies.h"
#include "runtime/src/job_context.h"
#include "runtime/src/job_resources.h"
#include "runtime/src/staging.h"

namespace drun::runtime {

namespace gpu {
class NcclComm;
struct NcclDecision;
}  // namespace gpu

// One thread at a time.
class Communicator {
 public:
  // Creates the communicator of all ranks of the job. Collective.
  static Outcome<std::unique_ptr<Communicator>> create(JobContext job_context);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Creates the communicator of the members with our color, ordered by key, then by rank; null for a color below 0.
  // Collective.
  Outcome<std::unique_ptr<Communicator>> split(int color, int key, const CallOptions& options = {});
  // Creates the communicator of `group`, which all members know without communication. Collective among them. A timeout
  // of 0 stands for the job's. `function` is named in errors.
  Outcome<std::unique_ptr<Communicator>> among(Group group, std::chrono::milliseconds timeout, const char* function);
  Group local_group() const { return resources_->local(); }
  Group cross_group() const { return resources_->cross(); }
  std::uint32_t next_comm() const { return resources_->next_comm; }
  std::uint32_t comm() const { return group_.comm; }
  int rank() const { return group_.own; }
  int size() const { return group_.size(); }

  Status allreduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op,
                   const CallOptions& options = {});
  // `recv` is used at the root only.
  Status reduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op, int root,
                const CallOptions& options = {});
  Status reduce_scatter(const void* send, void* recv, std::size_t recv_count, drun_dtype dtype, drun_op op,
                        const CallOptions& options = {});
  Status broadcast(void* data, std::size_t count, drun_dtype dtype, int root, const CallOptions& options = {});
  Status allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const CallOptions& options = {});
  Status allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                    const std::size_t* recv_offsets, drun_dtype dtype, const CallOptions& options = {});
  // `recv` is used at the root only.
  Status gather(const void* send, void* recv, std::size_t count, drun_dtype dtype, int root,
                const CallOptions& options = {});
  // `send` is used at the root only.
  Status scatter(const void* send, void* recv, std::size_t count, drun_dtype dtype, int root,
                 const CallOptions& options = {});
  Status alltoall(const void* send, void* recv, std::size_t count, drun_dtype dtype, const CallOptions& options = {});
  Status alltoallv(const void* send, const std::size_t* send_counts, const std::size_t* send_offsets, void* recv,
                   const std::size_t* recv_counts, const std::size_t* recv_offsets, drun_dtype dtype,
                   const CallOptions& options = {});
  Status send(const void* data, std::size_t count, drun_dtype dtype, int peer, const CallOptions& options = {});
  Status recv(void* data, std::size_t count, drun_dtype dtype, int peer, const CallOptions& options = {});
  // Sends and receives, which all run at once.
  struct TransferCall {
    OpKind kind;
    void* data;  // a send only reads it
    std::size_t count;
    drun_dtype dtype;
    int peer;
    CallOptions options;
  };
  Status transfer(const std::vector<TransferCall>& calls);
  // Allreduces of one type and reduction; small ones share a message.
  struct AllreduceCall {
    const void* send;
    void* recv;
    std::size_t count;
    drun_memory memory = DRUN_MEMORY_AUTO;  // these four replace those of the options
    void* stream = nullptr;
    gpu::StreamWait* later = nullptr;
    std::chrono::milliseconds timeout{0};
  };
  static CallOptions with_options_of(const AllreduceCall& call, CallOptions options) {
    options.timeout = call.timeout;
    options.memory = call.memory;
    options.stream = call.stream;
    options.later = call.later;
    return options;
  }
  Status allreduce_all(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                       const CallOptions& options = {});
  // Checks the arguments of a call without beginning it.
  Status check_allreduce(const AllreduceCall& call, drun_dtype dtype, drun_op op, const CallOptions& options) const;
  Status check_transfer(const TransferCall& call) const;
  Status barrier(const CallOptions& options = {});
  // Collective; see drun_register.
  Status register_memory(void* memory, std::size_t n_bytes, const CallOptions& options = {});
  // Deregisters the memory that begins in these bytes, on all communicators. No call under way may use it.
  Status deregister(const void* memory, std::size_t n_bytes, const char* during) {
    return resources_->deregister(memory, n_bytes, during);
  }

  // Publishes a local failure that kept a call from being carried out. No further call works, on any communicator.
  Status fail(Failure failure);
  // Publishes that this rank makes no further calls.
  void leave();

  const JobContext& job_context() const { return resources_->job_context(); }
  std::chrono::milliseconds timeout_of(const CallOptions& options) const {
    return options.timeout.count() > 0 ? options.timeout : job_context().timeouts.op;
  }
  // Polls the calls on GPUs (JobResources::poll()). Must be called periodically once GPUs are in use.
  void poll() { resources_->poll(); }
  // Polls, then returns the failure, if there is one.
  Status poll_for_failure() {
    poll();
    return check_usable();
  }
  gpu::Context gpu_context() const { return resources_->devices().context(); }  // nullptr if no GPU is in use over NCCL
  // A call that was still running on a GPU at the last poll(), as "allreduce #3 'grad'"; "" if none was.
  std::string under_way() const { return resources_->under_way(); }
  // finish_gpu() must be called before leave(), end_gpu() after it.
  Status finish_gpu() { return resources_->finish_gpu(); }
  void end_gpu() { resources_->end_gpu(); }
  bool is_idle() const;  // no call was running on a GPU at the last poll()
  bool is_broken() const { return resources_->broken().has_value(); }

 private:
  Communicator(std::shared_ptr<JobResources> resources, Group group);
  static Outcome<std::unique_ptr<Communicator>> create(std::shared_ptr<JobResources> resources, Group group,
                                                       const Operation& setup);
  Status check_usable() const {
    if (resources_->broken()) return earlier_failure();
    return {};
  }
  [[gnu::cold]] tl::unexpected<Failure> earlier_failure() const;
  // Runs all calls in as few messages as possible.
  Status allreduce_over_host(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                             const CallOptions& options);
  // Runs all calls in one message of `count` elements in total.
  Status allreduce_fused(std::vector<AllreduceCall> calls, std::size_t count, drun_dtype dtype, drun_op op,
                         const CallOptions& options);
  // The data is in host memory.
  Status allreduce_on_host(const Operation& operation, const void* send, void* recv);
  Status reduce_scatter_on_host(const Operation& operation, const void* send, void* recv);
  // fail() for a local failure in a call that other ranks wait for or count on; attributes it to this rank.
  Status fail_in(const Status& why);
  // The copies of a call on the host call it during a wait.
  gpu::HostCopies::CheckJob check_job();
  // Publishes a failure of the copies, which is this rank's unless they were interrupted.
  Status fail_in_copies(const gpu::HostCopies& copies, const Status& why);
  // Returns the result of a call after its output has been copied to the device.
  Status end(gpu::HostCopies& copies, Status done);
  // The memory of a collective on this rank. Where a copy on the host takes its place, the pointers are changed.
  struct Buffers {
    const void** read = nullptr;  // null: this rank sends nothing
    std::size_t n_read = 0;       // bytes
    void** written = nullptr;     // null: this rank receives nothing
    std::size_t n_written = 0;
    bool keeps = false;  // not all of `written` is overwritten

    // The memory by which the route is chosen. The pointer of a side without data may point anywhere; if neither side
    // has data, only the pointers can tell the kind of memory.
    std::array<const void*, 2> addresses() const {
      const bool none = n_read == 0 && n_written == 0;
      return {read != nullptr && (n_read > 0 || none) ? *read : nullptr,
              written != nullptr && (n_written > 0 || none) ? *written : nullptr};
    }
  };
  static bool may_be_of_gpu(const CallOptions& options) {
    return options.memory != DRUN_MEMORY_HOST && gpu::loaded_driver() != nullptr;
  }
  // Carries out a collective that has begun, by the route that choose_route() gives: over NCCL, if NCCL carries out
  // calls with this memory; else on the host, on the caller's memory or, if that is a device's, on copies of it. Groups
  // of calls, which NCCL carries out as one, have functions of their own for the two routes. `over_nccl`:
  // Status(gpu::NcclComm&, const gpu::UserStream&); `on_host`: Status(), on the memory of `buffers`. The first call
  // over NCCL sets NCCL up, together with all members. A failure is published.
  template <typename OverNccl, typename OnHost>
  Status carry_out(const Operation& operation, const CallOptions& options, const Buffers& buffers,
                   const OverNccl& over_nccl, const OnHost& on_host) {
    return carry_out(operation, options, may_be_of_gpu(options), buffers, over_nccl, on_host);
  }
  // The same for callers that know already: may_be_of_gpu() asks the dynamic linker, for 190 instructions.
  template <typename OverNccl, typename OnHost>
  Status carry_out(const Operation& operation, const CallOptions& options, bool is_of_gpu, const Buffers& buffers,
                   const OverNccl& over_nccl, const OnHost& on_host) {
    if (!is_of_gpu) return on_host();
    if (operation.count > 0 || operation.kind == OpKind::kAlltoallv) {  // the same on all members
      auto nccl = choose_route(operation, options, buffers.addresses());
      if (!nccl) return enqueued(tl::unexpected<Failure>(nccl.error()));
      if (*nccl != nullptr) return enqueued(over_nccl(**nccl, gpu::user_stream_of(options)));
    }
    gpu::HostCopies copies(operation, options, resources_->pinned(), job_context().call_deadline, check_job());
    if (auto ok = stage_buffers(copies, buffers); !ok) return ok;
    return end(copies, on_host());
  }
  Status stage_buffers(gpu::HostCopies& copies, const Buffers& buffers);
  // Returns null if the call goes over the host.
  Outcome<gpu::NcclComm*> choose_route(const Operation& operation, const CallOptions& options,
                                       const std::array<const void*, 2>& memory);
  Status set_up_nccl(const Operation& operation, const void* memory);
  // Splits the NCCL communicators of the local and the cross communicator off that of all ranks, as decided.
  Status split_nccl(gpu::NcclComm& all, const gpu::NcclDecision& decision, const Operation& operation);
  // Runs the calls on memory of GPUs in one NCCL call, and gives the numbers of those on memory of the host in
  // `on_host`, which are still to be run; nullopt if NCCL carries none out.
  std::optional<Status> allreduce_over_nccl(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                                            const CallOptions& options, std::vector<std::size_t>& on_host);
  Status transfer_over_host(const std::vector<TransferCall>& calls);
  Status transfer_with_nccl(const std::vector<TransferCall>& calls);  // requires nccl_
  Outcome<Operation> begin_transfer(const TransferCall& call);
  void warn_of_host(const std::string& why);
  // Gathers a text from each member, of at most `n_bytes` bytes without zeros. Returns the texts by member.
  Outcome<std::vector<std::string>> allgather_text(std::string word, std::size_t n_bytes, const CallOptions& options);
  // Returns the status of a call over NCCL, and publishes a failure.
  Status enqueued(const Status& status);
  // Describes the next call without beginning it, for errors. `asks_for_time` is that of the backend which carries it
  // out (Backend::asks_for_time()).
  Operation to_come(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options,
                    bool asks_for_time = false) const;
  Outcome<Operation> begin(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options,
                           bool asks_for_time = false);
  Status finish(Status status);
  // Reduces at most `most` elements at once. `reduce` works in place on the elements as they travel, in the user's
  // memory where possible. `recv` is null where the result is not wanted.
  template <typename Reduce>
  Status in_pieces(const Operation& operation, const void* send, void* recv, std::size_t most, const Reduce& reduce);

  std::shared_ptr<JobResources> resources_;
  Group group_;
  std::unique_ptr<Backend> backend_;  // null in a group of one
  gpu::NcclComm* nccl_ = nullptr;     // owned by resources_
  bool has_chosen_ = false;           // it is decided whether NCCL is used; if so, nccl_ is set
  std::uint64_t seq_ = 0;
  std::map<int, std::uint64_t> n_sent_, n_received_;  // by peer
};

}  // namespace drun::runtime
