// Collectives between the members of a group on one host, through shared memory. docs/collectives.md has the protocol.
#pragma once

#include <memory>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/segment.h"
#include "runtime/src/backend/shm/step_barrier.h"
#include "runtime/src/group.h"

namespace drun::runtime {

class ShmBackend : public Backend {
 public:
  // A reduce_scatter with blocks of any sizes, one per member, which do not overlap.
  virtual Status reduce_to_blocks(const Operation& operation, const Span& data, const std::vector<Block>& blocks) = 0;
  // Work that a call does in its thread while it waits.
  using Meanwhile = StepBarrier::Meanwhile;
  virtual void meanwhile(Meanwhile work) = 0;
};

// `network` has the same members. It carries out the calls that shared memory does not, and detects members that are
// gone. `job_context` must outlive the backend.
std::unique_ptr<ShmBackend> make_shm_backend(const JobContext& job_context, const Group& group,
                                             std::shared_ptr<Segment> segment, std::unique_ptr<Backend> network);

}  // namespace drun::runtime
