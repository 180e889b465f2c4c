// What all communicators of a process share: the job, its connections, the memory of the host; and the first failure,
// after which none of them is of use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/arena.h"
#include "runtime/src/backend/tcp/links.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_comm.h"
#include "runtime/src/gpu/pinned.h"
#include "runtime/src/group.h"
#include "runtime/src/staging.h"
#include "runtime/src/world.h"

namespace drun::runtime {

class ShmBackend;

// One thread at a time.
class Fabric {
 public:
  // Meets all ranks; collective.
  static Outcome<std::shared_ptr<Fabric>> create(World world);
  ~Fabric();

  const World& world() const { return world_; }
  // The ranks of our host, and those of all hosts that have our place among theirs.
  Group local() const;
  Group cross() const;
  // Collective among the members. Alone, a group of one, it needs no backend. `setup` has the deadline, and a name for
  // errors.
  Outcome<std::unique_ptr<Backend>> make_backend(const Group& group, const Operation& setup);
  static Operation setup_call(std::uint32_t comm, std::chrono::milliseconds timeout, std::string name);
  // The backend is closed with all others when something breaks. It must not outlive the fabric.
  void add(Backend* backend) { backends_.push_back(backend); }
  void remove(Backend* backend);
  // Communicators in NCCL, which live as long as the fabric: on a host they end together, see end_gpu().
  gpu::NcclComm* keep(std::unique_ptr<gpu::NcclComm> comm);
  // Whether the job has several hosts, one of them with several ranks: else its local and cross communicators are all
  // ranks, or one.
  bool has_parts() const;
  // That of the communicator of this number, by itself or split off with the one of all; nullptr: there is none, or
  // none yet. Members who meet there see the same.
  gpu::NcclComm* nccl_of(std::uint32_t comm) const;
  // Now and then, once there are such: what is known of their calls without waiting. A failure breaks all.
  void look();
  // The call that has been under way on some communicator of NCCL's; "": none.
  std::string under_way() const;
  // Memory is not NCCL's any more, on no communicator. `during`: whose doing it is, for errors.
  Status deregister(const void* memory, std::size_t n_bytes, const char* during);
  // Before anybody learns that we leave: until what is under way on GPUs has ended, or its time has.
  Status finish_gpu();
  // Then.
  void end_gpu();

  const std::optional<Failure>& broken() const { return broken_; }
  // Something failed, and the others know or will see.
  void break_all(const Failure& failure);

  // The program gets to know of it.
  void tell() { is_told_ = true; }

  // For whatever call is being made.
  Scratch& scratch() { return scratch_; }
  gpu::PinnedMemory& pinned() { return pinned_; }
  gpu::Devices& devices() { return devices_; }
  // What that rank said in drun_init.
  gpu::Presence gpu_of(int rank) const { return gpu_[static_cast<std::size_t>(rank)]; }
  // True once: the program was not told yet that data of GPUs goes through the host.
  bool first_warning() { return !std::exchange(has_warned_, true); }
  // And that its memory is not registered.
  bool first_warning_of_memory() { return !std::exchange(has_warned_of_memory_, true); }

  // For numbers of communicators, of which those that share ranks must differ.
  std::uint32_t next_comm;

 private:
  explicit Fabric(World world);
  // What was under way on a GPU, whose call has returned long ago.
  void break_later(const Failure& failure);
  void look_for_leavers(const gpu::NcclComm::Waiting& waiting, const std::string& during);
  Status share_memory();
  Outcome<std::string> word_of_first(Backend& network, const Group& group, const Operation& setup,
                                     const std::string& own_word);
  tl::unexpected<Failure> no_memory(Error error, const Operation& setup);
  Outcome<std::unique_ptr<ShmBackend>> make_local_backend(const Group& local, const Operation& setup);

  World world_;
  std::shared_ptr<Links> links_;   // none if we are alone
  std::shared_ptr<Arena> memory_;  // none if not all ranks have it, or we are alone on our host
  bool uses_memory_ = false;       // the same on all ranks
  std::vector<int> host_of_rank_;
  Scratch scratch_;
  gpu::PinnedMemory pinned_;
  gpu::Devices devices_;
  std::vector<gpu::Presence> gpu_;
  bool has_warned_ = false, has_warned_of_memory_ = false;
  std::vector<Backend*> backends_;
  std::vector<std::unique_ptr<gpu::NcclComm>> nccl_;  // in the order in which they were made, the same on all members
  Clock::time_point asked_{};                         // when we looked for what other ranks published
  std::size_t next_leaver_ = 0;                       // who comes next of those that may have left
  struct Leaver {
    int rank;
    std::uint64_t call;
    Clock::time_point seen;
  };
  std::optional<Leaver> leaver_;  // that a call waits for
  std::optional<Failure> broken_;
  bool is_told_ = true;  // broken_, by some call, if it is of what was under way on a GPU
};

}  // namespace drun::runtime
