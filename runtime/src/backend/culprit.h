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
  std::string call;   // what it waits in, if that is another call than ours of the same number
  std::string chain;  // who waits for whom between us and it, if a send or receive is part of that
};

// Says in the rendezvous, once a wait has lasted a second, that this rank waits, in which call and for whom: so that a
// rank whose deadline passes can tell those that wait, too, from the one that never came. One for each backend; what is
// written is the last of them to wait, and of several that wait none takes back another's word.
class WaitNote {
 public:
  // To be called now and then while the call waits. `waited_for` is asked only if something may have to be written.
  void waiting(const World& world, const Group& group, const Operation& operation,
               const std::function<std::vector<int>()>& waited_for);
  void done(const World& world);  // the call goes on, or is over

 private:
  Clock::time_point call_{}, began_{};  // the call is known by its deadline
  std::vector<int> told_;               // for whom it waits, as it is written; empty: nothing is
  std::uint64_t number_ = 0;            // of what we wrote, as World::n_wait_notes counts
};

// Who holds up a call that timed out: the rank next to us may itself only be waiting. Every rank that waits
// for long has a note (WaitNote); the chain of these ends at a rank that has none, or waits for nobody: it has not
// called the operation, or is stuck elsewhere. Calls of a process never overlap: one that waits, in whatever call,
// can't do what we need before that one is over. Of ranks that wait for each other in a circle it is the one that does
// so in a send or receive while we wait in a collective, else the first of `waited_for`, which is not empty.
// Takes up to two seconds.
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
