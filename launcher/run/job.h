// One job from host names to exit status. The order: connect, agents, network, rendezvous, workers, end.
// docs/architecture.md follows it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/connect/connect.h"
#include "launcher/network/network.h"
#include "launcher/output/output_writer.h"
#include "launcher/plan/worker_env.h"
#include "launcher/report/reporter.h"

namespace drun::launcher {

enum class StdinMode { kRank, kAll, kNone };

// Examines the connected hosts: an exit status other than 0 says that they are not ready, and the reporter was told
// why. `head`: the index of the host that runs drun, -1 if none does. `network`: what they found out about each other,
// if they came so far.
using ExamineHosts = std::function<Task<int>(asio::io_context& io, std::vector<AgentChannel*> hosts, int head,
                                             Reporter& reporter, std::optional<NetworkProbe>* network)>;

struct JobOptions {
  std::vector<std::string> command;
  std::vector<Host> hosts;    // after add_slots()
  int np = 0;                 // 0 = all slots
  bool slot_per_gpu = false;  // each host has as many slots as GPUs: known when it is connected
  ConnectOptions connect;
  std::vector<std::string> interfaces;  // --network-interfaces
  std::string cache_directory;          // for what probing found; "" = none
  bool read_cache = true;               // else it is only written
  ExamineHosts examine_hosts;           // --check: before anything is started; empty: not asked for
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
