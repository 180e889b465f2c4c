// The position of each rank in its collectives, as the agents read it from the flight recorders. docs/recorder.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/messages.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/report/first_failure.h"
#include "launcher/run/rank_table.h"

namespace drun::launcher {

// "allreduce #1284 'grad.17'", "barrier[local] #2", "send #3 to rank 2".
std::string call_text(const control::RecordedCall& call);

// The progress of a rank, as far as it is known. Pure.
struct RankProgress {
  int rank = 0;
  std::string host;
  int pid = 0;  // 0: not started
  bool over = false;
  std::optional<control::RankActivity> activity;  // none: it has no recorder, so far
  Deadline changed{};                             // since when it is so, as far as drun has seen
  double age_s = 0;                               // how long it had been so then, by its host's clock
};

// The last call of a rank, at the moment of `activity`; nothing if it made none.
std::optional<LastCall> last_call(const control::RankActivity& activity);

// Owned by the job; one thread. `ranks` outlives it.
class CollectiveProgress {
 public:
  explicit CollectiveProgress(const RankTable& ranks) : table_(ranks) {}
  void expect(const std::vector<AgentChannel*>& hosts) { hosts_ = hosts; }  // by used host; for their clocks
  void take(const control::Activity& message, Deadline now);
  std::vector<RankProgress> ranks() const;
  // Adds to a failure what the ranks had done last, and which of the others waited in what.
  void add_to(FirstFailure& failure) const;

 private:
  struct Seen {
    std::optional<control::RankActivity> activity;
    Deadline changed{};
    double age_s = 0;
  };
  const RankTable& table_;
  std::vector<Seen> seen_;  // by rank; grows with the first activity
  std::vector<AgentChannel*> hosts_;
};

}  // namespace drun::launcher
