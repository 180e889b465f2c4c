// Collectives on host memory over TCP between all ranks.
#pragma once

#include <memory>

#include "runtime/src/backend/backend.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// Connects the neighbours; collective. `world` outlives the backend.
Outcome<std::unique_ptr<Backend>> make_tcp_backend(const World& world);

}  // namespace drun::runtime
