// Who is at fault when a collective can't go on. The failures are published, so that those who only see the
// consequences learn of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/src/group.h"
#include "runtime/src/operation.h"
#include "runtime/src/world.h"

namespace drun::runtime {

struct Culprit {
  int rank = -1;
  std::string call;  // what it waits in, if that is another call than ours of the same number
};

// Says in the rendezvous, once a wait has lasted a second, that this rank waits, in which call and for whom: so that a
// rank whose deadline passes can tell those that wait, too, from the one that never came. One for each backend.
class WaitNote {
 public:
  // To be called now and then while the call waits. `waited_for` is asked only if something may have to be written.
  void waiting(const World& world, const Group& group, const Operation& operation,
               const std::function<std::vector<int>()>& waited_for);
  void done(const World& world);  // the call goes on, or is over

 private:
  Clock::time_point call_{}, began_{};  // the call is known by its deadline
  std::vector<int> told_;               // for whom it waits, as it is written; empty: nothing is
};

// Who holds up a collective that timed out: the rank next to us may itself only be waiting. Every rank that waits
// for long has a note (WaitNote); the chain of these ends at a rank that has none, or waits for nobody: it has not
// called the operation, or is stuck elsewhere. Takes up to two seconds. `waited_for` is not empty.
// `group`: who carries out the operation. Ranks are the job's, here and below.
Culprit find_culprit(const World& world, const Group& group, const Operation& operation,
                     const std::vector<int>& waited_for);
// `why_not`: what is known of the rank's silence; may be empty.
Failure timeout_failure(const World& world, const Group& group, const Operation& operation,
                        const std::vector<int>& waited_for, const std::function<std::string(int rank)>& why_not = {});
// `their_call`: as describe_in() has it.
Failure mismatch_failure(const World& world, const Group& group, const Operation& operation, int peer,
                         const std::string& their_call);
// describe(), with the root as a rank of the job.
std::string describe_in(const Group& group, Operation operation);

}  // namespace drun::runtime
