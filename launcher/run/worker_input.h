// drun's standard input on its way to the workers that read it: `--stdin` 0, another rank, or all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/host_link.h"
#include "launcher/output/stdin_flow.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/plan/placement.h"
#include "launcher/report/reporter.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

// Owned by the job, on its thread; what it is given outlives it.
class WorkerInput {
 public:
  // `readers`: ranks, at least one. `hosts`: by used host.
  WorkerInput(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, std::vector<HostLink*> hosts,
              Placement placement, const std::vector<int>& readers);

  Task<void> read();   // drun's input, as the readers take it
  Task<void> watch();  // for readers that hold the others up
  // The rank has taken in so many bytes, or kRankOver.
  void on_taken(int rank, std::uint64_t n_bytes);
  void stop();

 private:
  void send(const std::string& bytes);
  void send_end();

  Reporter& reporter_;
  Supervisor& supervisor_;
  std::vector<HostLink*> hosts_;
  Placement placement_;
  StdinFlow flow_;
  StdinReader reader_;
  Event stopped_;
};

}  // namespace drun::launcher
