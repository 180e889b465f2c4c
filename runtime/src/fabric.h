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
  // Collective among the members. Alone, a group of one, it needs no backend.
  Outcome<std::unique_ptr<Backend>> make_backend(const Group& group);
  // The backend is closed with all others when something breaks. It must not outlive the fabric.
  void add(Backend* backend) { backends_.push_back(backend); }
  void remove(Backend* backend);

  const std::optional<Failure>& broken() const { return broken_; }
  // Something failed, and the others know or will see.
  void break_all(const Failure& failure);

  // For numbers of communicators, of which those that share ranks must differ.
  std::uint32_t next_comm = kFirstCommOfSplit;

 private:
  explicit Fabric(World world) : world_(std::move(world)) {}
  Status share_memory();
  Failure setup_failure(const Error& error, const std::string& during) const;
  Outcome<std::unique_ptr<ShmBackend>> make_local_backend(const Group& local);

  World world_;
  std::shared_ptr<Links> links_;   // none if we are alone
  std::shared_ptr<Arena> memory_;  // none if not all ranks have it, or we are alone on our host
  bool uses_memory_ = false;       // the same on all ranks
  std::vector<int> host_of_rank_;
  std::vector<Backend*> backends_;
  std::optional<Failure> broken_;
};

}  // namespace drun::runtime
