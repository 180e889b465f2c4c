// One job from host names to exit status. The order: connect, agents, network, rendezvous, workers, end.
// docs/architecture.md follows it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/check/check_result.h"
#include "launcher/connect.h"
#include "launcher/output_writer.h"
#include "launcher/reporter.h"
#include "launcher/worker_env.h"

namespace drun::launcher {

enum class StdinMode { kRank, kAll, kNone };

struct JobOptions {
  std::vector<std::string> command;
  std::vector<Host> hosts;  // after add_slots()
  int np = 0;               // 0 = all slots
  ConnectOptions connect;
  std::vector<std::string> interfaces;  // --network-interfaces
  std::string cache_directory;          // for what probing found; "" = none
  bool read_cache = true;               // else it is only written
  std::optional<CheckDepth> check;      // --check: before anything is started
  EnvRequest env;
  Environment own_env;
  std::string working_directory;
  StdinMode stdin_mode = StdinMode::kRank;
  int stdin_rank = 0;
  OutputOptions output;
  bool pty = false;
  std::uint32_t umask = 022;  // of the workers, on every host
  control::BindTo bind_to = control::BindTo::kNone;
  bool shares_cores = false;  // with bind_to: more workers than cores is no error
  bool allows_mpi = false;    // to start a program of MPI, which finds no other rank
  std::chrono::milliseconds grace{5000};
  std::chrono::milliseconds timeout{0};            // of the whole job; 0 = none
  std::chrono::milliseconds stack_timeout{10000};  // then: how long reading stacks may take; 0 = no stacks
  std::chrono::milliseconds stall_timeout{60000};  // without progress in a collective, then it is told; 0 = never
  std::string events_file;                         // --events; "" = none
  std::string timeline_file;                       // --timeline; "" = none
  std::chrono::milliseconds heartbeat_timeout{30000};
};

// Runs the job on its own io_context and thread. Returns drun's exit status (docs/exit-status.md).
int run_job(JobOptions options, Reporter& reporter);

}  // namespace drun::launcher
