// Calls that have made no progress for a while: which ranks wait in which call, which ranks are missing, and what those
// did last.
// docs/recorder.md.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/asio.h"
#include "launcher/report/reporter.h"
#include "launcher/run/collective_progress.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

struct Stall {
  std::string id;            // of the call, unique in the job
  std::string call;          // "allreduce #1284 'grad.17'"
  std::vector<int> waiting;  // ranks that are in it
  std::string details;       // lines about the waiting and the missing ranks
};

// Calls that have made no progress for `limit`: the oldest call of each communicator, and each send and recv. Pure.
std::vector<Stall> find_stalls(const std::vector<RankProgress>& ranks, Deadline now, std::chrono::milliseconds limit);

// "NCCL on gpu1 says:" and its lines, up to a maximum. Pure.
std::string ras_words(const std::string& host, std::string_view text);

// Asks the agents periodically, warns of each stall once, and reports when it is over. Owned by the job; one thread.
class StallReporter {
 public:
  StallReporter(asio::io_context& io, Reporter& reporter, const CollectiveProgress& board, const Supervisor& supervisor)
      : reporter_(reporter), board_(board), supervisor_(supervisor), stopped_(io.get_executor()) {}
  Task<void> watch(std::vector<AgentChannel*> hosts, std::chrono::milliseconds limit);
  // Prints NCCL's report on the job's ranks, which was requested because of a stall. Ignored once the job is ending.
  void take_ras(const std::string& host, const std::string& text);
  // Idempotent; may be called before watch().
  void stop() { stopped_.notify(); }

 private:
  struct Reported {
    Stall stall;
    Deadline since{};
  };
  bool poll(std::chrono::milliseconds limit);  // true if there was a new stall to report

  Reporter& reporter_;
  const CollectiveProgress& board_;
  const Supervisor& supervisor_;
  Event stopped_;
  std::map<std::string, Reported> reported_;  // by id
};

}  // namespace drun::launcher
