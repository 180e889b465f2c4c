// Who is at fault when a collective can't go on. What these say is published, so that those who only see the
// consequences learn of it.
#pragma once

#include <vector>

#include "runtime/src/operation.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// Who holds up a collective that timed out: the rank next to us may itself only be waiting. Every rank that times out
// writes down whom it waits for; the chain of these notes ends at a rank that wrote none: it has not called the
// operation, or is stuck elsewhere. Takes up to two seconds. `waited_for` is not empty.
int find_culprit(const World& world, const Operation& operation, const std::vector<int>& waited_for);
Failure timeout_failure(const World& world, const Operation& operation, const std::vector<int>& waited_for);
Failure mismatch_failure(const World& world, const Operation& operation, int peer, const Operation& theirs);

}  // namespace drun::runtime
