// --bind-to: which CPUs each worker of this host gets. Pure.
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
  bool shares_cores = false;   // --oversubscribe: more workers than cores is no error
  std::vector<int> gpu_nodes;  // by local rank; -1 or missing: not known
};

struct WorkerCpus {
  std::vector<int> cpus;  // in order
  std::string place;      // for people: "cores 0-3", "NUMA node 1"
  int threads = 1;        // as many as compute there at full speed: one for each core, within the quota
};

// `cores` are all of this machine, of which the workers may use the CPUs in `usable`. core: an even share of the usable
// cores for each worker, contiguous, with all usable threads of each. numa: all usable CPUs of one node, the worker's
// GPU's, else the one in which its even share of the cores begins. `quota`: of processors, for all workers together.
// Errc::kUsage: more workers than cores.
Result<std::vector<WorkerCpus>> bind_workers(const BindingRequest& request, const std::vector<Core>& cores,
                                             const std::vector<int>& usable, std::optional<double> quota);

}  // namespace drun::agent
