// Failure attribution: finds the rank to which a collective that can't go on is due. Failures are published, so that
// ranks that see only the consequences learn the cause.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

struct Attribution {
  int rank = -1;
  std::string call;   // the call that it is in, if that is another one than ours of the same number
  std::string chain;  // the chain of waits from us to it, if a send or receive is part of it
};

// Publishes in the rendezvous, once a wait has lasted a second, that this rank waits, in which call and for which
// ranks. A rank whose deadline passes can then distinguish ranks that also wait from the one that never came. Each
// backend has one, and all of a rank share one published note: the last waiter overwrites it, and only its writer
// removes it.
class WaitNote {
 public:
  // Must be called periodically while the call waits. `waited_for` is called only if a note may have to be written.
  void waiting(const JobContext& job_context, const Group& group, const Operation& operation,
               const std::function<std::vector<int>()>& waited_for);
  void done(const JobContext& job_context);  // the call proceeds or has ended

 private:
  Clock::time_point call_{}, began_{};  // call_ identifies the call by its deadline
  std::vector<int> told_;               // the ranks in the published note; empty if there is none
  std::uint64_t number_ = 0;            // number of our note, as counted by JobContext::n_wait_notes
};

// Finds the rank that holds up a call that timed out: a rank that we wait for may itself only be waiting. Every rank
// that waits for long has a note (WaitNote). The chain of notes ends at a rank that has none or waits for no rank: it
// has not called the operation, or is stuck elsewhere. Calls of a process never overlap: a rank that waits in any call
// can't do its part of ours before that call is over. If the ranks wait for each other in a circle, returns the one
// that does so in a send or receive while we wait in a collective, else the first of `waited_for`, which must not be
// empty. Takes up to two seconds.
// `group` is the ranks that carry out the operation. Ranks are the job's, here and below.
Attribution attribute_timeout(const JobContext& job_context, const Group& group, const Operation& operation,
                              const std::vector<int>& waited_for);
// `why_not` returns what is known of the rank's silence, or an empty text.
Failure timeout_failure(const JobContext& job_context, const Group& group, const Operation& operation,
                        const std::vector<int>& waited_for, const std::function<std::string(int rank)>& why_not = {});
// `their_call` is worded as by describe_in().
Failure mismatch_failure(const JobContext& job_context, const Group& group, const Operation& operation, int peer,
                         const std::string& their_call);
// describe(), with the root as a rank of the job.
std::string describe_in(const Group& group, Operation operation);

}  // namespace drun::runtime
