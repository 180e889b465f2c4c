// Collectives between the ranks of one host, in memory that they share. docs/collectives.md has the protocol.
#pragma once

#include <memory>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/segment.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// Collective, among ranks that are all on one host: agrees on the use of `world.memory`, or gives `network` back if a
// rank has none. `network` does what shared memory doesn't, and tells who is gone. `world` outlives the backend.
Outcome<std::unique_ptr<Backend>> make_shm_backend(const World& world, std::unique_ptr<Backend> network);

// The same with memory that is set up.
std::unique_ptr<Backend> make_shm_backend(const World& world, std::shared_ptr<Segment> segment,
                                          std::unique_ptr<Backend> network);

}  // namespace drun::runtime
