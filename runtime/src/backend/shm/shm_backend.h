// Collectives between members of a group on one host, in memory that they share. docs/collectives.md has the protocol.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/segment.h"
#include "runtime/src/group.h"

namespace drun::runtime {

class ShmBackend : public Backend {
 public:
  // A reduce_scatter of blocks of any sizes, one for each member, none over another.
  virtual Status reduce_to_blocks(const Operation& operation, const Span& data, const std::vector<Block>& blocks) = 0;
  // What to go on with while a call waits, in its thread; returns for how long it need not be called. A failure is
  // the call's. None: the call only waits.
  using Meanwhile = std::function<Outcome<std::chrono::microseconds>()>;
  virtual void meanwhile(Meanwhile work) = 0;
};

// `network`, between the same members, does what shared memory doesn't, and tells who is gone. `world` outlives the
// backend.
std::unique_ptr<ShmBackend> make_shm_backend(const World& world, const Group& group, std::shared_ptr<Segment> segment,
                                             std::unique_ptr<Backend> network);

}  // namespace drun::runtime
