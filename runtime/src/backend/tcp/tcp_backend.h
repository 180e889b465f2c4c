// Collectives on host memory over TCP between the members of a group.
#pragma once

#include <memory>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/tcp/links.h"
#include "runtime/src/group.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// `world` outlives the backend.
std::unique_ptr<Backend> make_tcp_backend(const World& world, std::shared_ptr<Links> links, Group group);

}  // namespace drun::runtime
