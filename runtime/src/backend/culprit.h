// Who is at fault when a collective can't go on. The failures are published, so that those who only see the
// consequences learn of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/src/operation.h"
#include "runtime/src/world.h"

namespace drun::runtime {

struct Culprit {
  int rank = -1;
  std::string call;  // what it waits in, if that is another call than ours of the same number
};

// Who holds up a collective that timed out: the rank next to us may itself only be waiting. Every rank that times out
// writes down what it called and whom it waits for; the chain of these notes ends at a rank that wrote none: it has not
// called the operation, or is stuck elsewhere. Takes up to two seconds. `waited_for` is not empty.
Culprit find_culprit(const World& world, const Operation& operation, const std::vector<int>& waited_for);
// `why_not`: what is known of the rank's silence; may be empty.
Failure timeout_failure(const World& world, const Operation& operation, const std::vector<int>& waited_for,
                        const std::function<std::string(int rank)>& why_not = {});
// `their_call`: as describe() has it.
Failure mismatch_failure(const World& world, const Operation& operation, int peer, const std::string& their_call);

}  // namespace drun::runtime
