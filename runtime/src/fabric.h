// What all communicators of a process share: the job, its connections, the memory of the host; and the first failure,
// after which none of them is of use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/arena.h"
#include "runtime/src/backend/tcp/links.h"
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

  const std::optional<Failure>& broken() const { return broken_; }
  // Something failed, and the others know or will see.
  void break_all(const Failure& failure);

  // For whatever call is being made.
  Scratch& scratch() { return scratch_; }

  // For numbers of communicators, of which those that share ranks must differ.
  std::uint32_t next_comm;

 private:
  explicit Fabric(World world) : next_comm(world.first_comm), world_(std::move(world)) {}
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
  std::vector<Backend*> backends_;
  std::optional<Failure> broken_;
};

}  // namespace drun::runtime
