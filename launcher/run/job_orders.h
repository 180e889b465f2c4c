// The orders by which agents prepare and start the workers of a job. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/messages.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/worker_env.h"
#include "launcher/run/job.h"
#include "netdetect/choose.h"
#include "rendezvous/agent_socket.h"

namespace drun::launcher {

// The decisions of a job before it starts its workers. Vectors are by used host.
struct StartPlan {
  Placement placement;
  std::vector<std::string> host_names;
  std::vector<int> n_cpus;  // that its workers may use at the same time
  netdetect::Choice network;
  std::vector<rendezvous::Handout> handouts;
  std::vector<HorovodRoute> horovod;                    // empty without --compat real-horovod
  std::vector<std::vector<control::Binding>> bindings;  // by local rank; empty without --bind-to
  std::string job_id;
  rendezvous::JobKey key;
  int master_port = 0;

  const control::Binding* binding_of(const RankPlace& place) const;  // nullptr without --bind-to
};

// Time limit for an agent, in ms, if drun waits as long as `left`: the agent then names the cause before drun gives it
// up.
std::uint32_t time_of_agent(std::chrono::milliseconds left);

// `is_head`: the host runs drun. Without time_ms.
control::Prepare prepare_order(const JobOptions& options, const StartPlan& plan, std::size_t host, bool is_head);
// The problems that keep a host from running workers.
std::vector<Error> errors_of(const control::Prepared& prepared, const std::string& host_name);
// Bytes that the agent of a worker may send of each of its outputs before it gets credit.
std::size_t output_credit(std::size_t n_workers);
// By used host, without start_ms. `window`: the size of the workers' terminals.
std::vector<control::Spawn> spawn_orders(const JobOptions& options, const StartPlan& plan, control::WindowSize window);
// The threads that OpenMP gets, by rank where workers are bound, else by host.
std::vector<ThreadsOfHost> threads_of(const JobOptions& options, const StartPlan& plan);

}  // namespace drun::launcher
