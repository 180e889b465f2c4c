// --bind-to: chooses the CPUs of each worker of this host. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/cpu_topology.h"
#include "base/error.h"
#include "control/messages.h"

namespace drun::agent {

struct BindingRequest {
  control::BindTo to = control::BindTo::kCore;
  int n_workers = 1;
  bool shares_cores = false;   // --oversubscribe: allows more workers than cores
  std::vector<int> gpu_nodes;  // by local rank; -1 or missing: unknown
};

struct WorkerCpus {
  std::vector<int> cpus;  // in order
  std::string place;      // for display: "cores 0-3", "NUMA node 1"
  int threads = 1;        // max threads at full speed: one per core, within the quota
};

// `cores`: all cores of this machine, of which the workers may use only the CPUs in `usable`. core: gives each worker
// an even, contiguous share of the usable cores, with all usable threads of each. numa: gives each worker all usable
// CPUs of one node: its GPU's node if that has any, else the node where its even share of the cores begins. `quota`:
// number of processors for all workers together. Errc::kUsage: more workers than cores. Errc::kUnreachable: no usable
// core is known.
Result<std::vector<WorkerCpus>> bind_workers(const BindingRequest& request, const std::vector<Core>& cores,
                                             const std::vector<int>& usable, std::optional<double> quota);

}  // namespace drun::agent
