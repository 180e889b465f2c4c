// State shared by all communicators of a process: the job, its connections, the host's shared memory; and the first
// failure, after which no communicator can be used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/arena.h"
#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_comm.h"
#include "runtime/src/gpu/pinned.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/staging.h"

namespace drun::runtime {

class ShmBackend;

// One thread at a time.
class JobResources {
 public:
  // Connects with the other ranks of the job. Collective.
  static Outcome<std::shared_ptr<JobResources>> create(JobContext job_context);
  ~JobResources();

  const JobContext& job_context() const { return job_context_; }
  // The ranks of our host, and the ranks of all hosts that have our place among the ranks of their host.
  Group local() const;
  Group cross() const;
  // Creates the backend of `group`; null for a group of one, which needs none. Collective among the members. `setup`
  // has the deadline, and a name for errors.
  Outcome<std::unique_ptr<Backend>> make_backend(const Group& group, const Operation& setup);
  static Operation setup_call(std::uint32_t comm, std::chrono::milliseconds timeout, std::string name);
  // Registers a backend, which is closed with all others on a failure. It must not outlive JobResources.
  void add(Backend* backend) { backends_.push_back(backend); }
  void remove(Backend* backend);
  // Takes ownership of an NCCL communicator, until it is released and idle, or until JobResources ends: those of a host
  // end together, see end_gpu().
  gpu::NcclComm* keep(std::unique_ptr<gpu::NcclComm> comm);
  // True if the job has several hosts, one of them with several ranks. Otherwise its local and cross communicators are
  // all ranks, or one rank.
  bool has_parts() const;
  // The NCCL communicator of communicator `comm`, created by itself or split off that of all ranks; null if there is
  // none yet. Members get the same answer in the same call.
  gpu::NcclComm* nccl_of(std::uint32_t comm) const;
  // Polls the NCCL communicators for finished calls and failures, without waiting. A failure breaks all. Must be called
  // periodically once there are such communicators.
  void poll();
  // A call under way on some NCCL communicator; "" if there is none.
  std::string under_way() const;
  // Deregisters memory from all NCCL communicators. `during` names the caller, for errors.
  Status deregister(const void* memory, std::size_t n_bytes, const char* during);
  // Waits until the calls under way on GPUs have ended or timed out. Must be called before this rank publishes that it
  // leaves.
  Status finish_gpu();
  // Ends the NCCL communicators. Must be called after this rank has published that it leaves.
  void end_gpu();

  const std::optional<Failure>& broken() const { return broken_; }
  // Records a failure that the other ranks know or will notice, and closes all backends and connections. Only the first
  // failure counts.
  void break_all(const Failure& failure);

  // Notes that the current call reports the failure to the program.
  void tell() { is_told_ = true; }

  // For use by the current call.
  Scratch& scratch() { return scratch_; }
  gpu::PinnedMemory& pinned() { return pinned_; }
  gpu::Devices& devices() { return devices_; }
  // GPU presence of `rank`, as it reported in drun_init.
  gpu::Presence gpu_of(int rank) const { return gpu_[static_cast<std::size_t>(rank)]; }
  // Returns true once: the program has not been warned yet that data of GPUs goes through the host.
  bool first_warning() { return !std::exchange(has_warned_, true); }
  // The same for the warning that its memory is not registered.
  bool first_warning_of_memory() { return !std::exchange(has_warned_of_memory_, true); }

  // Next communicator number to propose. Communicators that share ranks need distinct numbers.
  std::uint32_t next_comm;

 private:
  explicit JobResources(JobContext job_context);
  // break_all() for a call on a GPU that has already returned to the program.
  void break_later(const Failure& failure);
  void poll_for_leavers(const gpu::NcclComm::Waiting& waiting, const std::string& during);
  Status share_memory();
  Outcome<std::string> word_of_first(Backend& network, const Group& group, const Operation& setup,
                                     const std::string& own_word);
  tl::unexpected<Failure> no_memory(Error error, const Operation& setup);
  Outcome<std::unique_ptr<ShmBackend>> make_local_backend(const Group& local, const Operation& setup);

  JobContext job_context_;
  std::shared_ptr<Connections> connections_;  // null if the job has one rank
  std::shared_ptr<Arena> memory_;             // null unless all ranks have it and our host has several ranks
  bool uses_memory_ = false;                  // the same on all ranks
  std::vector<int> host_of_rank_;
  Scratch scratch_;
  gpu::PinnedMemory pinned_;
  gpu::Devices devices_;
  std::vector<gpu::Presence> gpu_;
  bool has_warned_ = false, has_warned_of_memory_ = false;
  std::vector<Backend*> backends_;
  std::vector<std::unique_ptr<gpu::NcclComm>> nccl_;  // in order of creation, the same on all members
  Clock::time_point asked_{};                         // last check for failures that other ranks published
  std::size_t next_leaver_ = 0;                       // next peer to check for having left
  struct Leaver {
    int rank;
    std::uint64_t call;
    Clock::time_point seen;
  };
  std::optional<Leaver> leaver_;  // a peer that has left while a call waits for it
  std::optional<Failure> broken_;
  bool is_told_ = true;  // false: broken_ is from a call on a GPU, and no later call has reported it
};

}  // namespace drun::runtime
