// Sends drun's standard input to the workers that read it: `--stdin` 0, another rank, or all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/output/stdin_flow.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/plan/placement.h"
#include "launcher/report/reporter.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

// Owned by the job, on its thread. The objects passed to it must outlive it.
class WorkerInput {
 public:
  // `readers`: ranks, at least one. `hosts`: by used host.
  WorkerInput(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, std::vector<AgentChannel*> hosts,
              Placement placement, const std::vector<int>& readers);

  Task<void> read();   // reads drun's input as fast as the readers take it
  Task<void> watch();  // warns of readers that delay the others
  // The rank has taken `n_bytes`, or kRankOver: it will take no more.
  void on_taken(int rank, std::uint64_t n_bytes);
  void stop();

 private:
  void send(const std::string& bytes);
  void send_end();

  Reporter& reporter_;
  Supervisor& supervisor_;
  std::vector<AgentChannel*> hosts_;
  Placement placement_;
  StdinFlow flow_;
  StdinReader reader_;
  Event stopped_;
};

}  // namespace drun::launcher
