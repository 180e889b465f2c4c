// Calls that have not moved for a while: who waits in which, who has not come, and what those did last.
// docs/recorder.md.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/asio.h"
#include "launcher/report/reporter.h"
#include "launcher/run/rank_activity.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

struct Stall {
  std::string id;            // of the call, among all of the job
  std::string call;          // "allreduce #1284 'grad.17'"
  std::vector<int> waiting;  // ranks that are in it
  std::string details;       // lines about who waits and who does not
};

// What has not moved for `limit`: of each communicator its oldest call, and each send and recv. Pure.
std::vector<Stall> find_stalls(const std::vector<RankStanding>& ranks, Deadline now, std::chrono::milliseconds limit);

// "NCCL on gpu1 says:" and its lines, as far as a user wants to read them. Pure.
std::string ras_words(const std::string& host, std::string_view text);

// Asks the agents now and then, and warns of each stall once, and again when it is over. Owned by the job; one thread.
class StallReporter {
 public:
  StallReporter(asio::io_context& io, Reporter& reporter, const ActivityBoard& board, const Supervisor& supervisor)
      : reporter_(reporter), board_(board), supervisor_(supervisor), stopped_(io.get_executor()) {}
  Task<void> watch(std::vector<HostLink*> hosts, std::chrono::milliseconds limit);
  // What NCCL said of the job's ranks when it was asked because of a stall. Not once the job ends.
  void take_ras(const std::string& host, const std::string& text);
  // Idempotent; before watch() too.
  void stop() { stopped_.notify(); }

 private:
  struct Told {
    Stall stall;
    Deadline since{};
  };
  bool look(std::chrono::milliseconds limit);  // whether there was something new to tell

  Reporter& reporter_;
  const ActivityBoard& board_;
  const Supervisor& supervisor_;
  Event stopped_;
  std::map<std::string, Told> told_;  // by id
};

}  // namespace drun::launcher
