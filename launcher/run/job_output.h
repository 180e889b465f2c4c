// The output of a job's workers: goes to drun's own streams and files, with credit for the agents that carry it. The
// workers' terminals have the size of drun's.
#pragma once

#include <cstddef>
#include <vector>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/output/output_writer.h"
#include "launcher/plan/placement.h"
#include "launcher/report/reporter.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

// Owned by the job, on its thread; what it is given outlives it.
class JobOutput {
 public:
  JobOutput(asio::io_context& io, OutputOptions options, Reporter& reporter, Supervisor& supervisor);

  // Creates the files of the ranks, at the latest until the deadline, and says so if that takes long. `hosts`: by used
  // host.
  Task<Result<void>> open(std::vector<AgentChannel*> hosts, const Placement& placement, Deadline deadline);
  // Writes until finish(). drun's own messages go the same way from this call on.
  Task<void> run();
  // Returns when all is written; what is written last may fail, too. After run().
  Task<void> finish();
  OutputWriter& writer() { return writer_; }
  const OutputWriter& writer() const { return writer_; }

  // The size that the workers' terminals have, or should have by now.
  control::WindowSize window();
  void resize_workers();  // after drun's terminal was resized

 private:
  Task<void> write();
  void give_credit(int rank, control::Stream stream, std::size_t n_bytes);
  void speak_through(const Reporter::Sink& sink);

  Reporter& reporter_;
  std::vector<AgentChannel*> hosts_;
  std::vector<int> host_of_;  // by rank
  OutputWriter writer_;
  control::WindowSize window_;
  Event done_;
};

}  // namespace drun::launcher
