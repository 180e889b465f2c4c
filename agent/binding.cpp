#include "agent/binding.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/text.h"

namespace drun::agent {

namespace {

struct UsableCore {
  int number = 0;  // among all cores of the machine
  int node = 0;
  std::vector<int> cpus;
};

std::vector<UsableCore> usable_cores(const std::vector<Core>& cores, const std::vector<int>& usable) {
  std::vector<UsableCore> out;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    UsableCore core;
    core.number = static_cast<int>(i);
    core.node = cores[i].node;
    std::set_intersection(cores[i].cpus.begin(), cores[i].cpus.end(), usable.begin(), usable.end(),
                          std::back_inserter(core.cpus));
    if (!core.cpus.empty()) out.push_back(std::move(core));
  }
  return out;
}

// Index of the first core in the even share of worker `i`; the number of cores for `i` = n_workers.
std::size_t share_begin(int i, int n_workers, std::size_t n_cores) {
  return static_cast<std::size_t>(i) * n_cores / static_cast<std::size_t>(n_workers);
}

void add_cpus(const UsableCore& core, std::vector<int>& cpus) {
  cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
}

std::vector<WorkerCpus> bind_to_cores(int n_workers, const std::vector<UsableCore>& cores) {
  std::vector<WorkerCpus> out;
  for (int i = 0; i < n_workers; ++i) {
    const std::size_t begin = share_begin(i, n_workers, cores.size());
    const std::size_t end = std::max(begin + 1, share_begin(i + 1, n_workers, cores.size()));
    WorkerCpus worker;
    std::vector<int> numbers;
    for (std::size_t c = begin; c < end; ++c) {
      add_cpus(cores[c], worker.cpus);
      numbers.push_back(cores[c].number);
    }
    worker.place = (numbers.size() == 1 ? "core " : "cores ") + ranges_text(numbers);
    worker.threads = static_cast<int>(numbers.size());
    out.push_back(std::move(worker));
  }
  return out;
}

std::map<int, int> cores_by_node(const std::vector<UsableCore>& cores) {
  std::map<int, int> out;
  for (const auto& core : cores) ++out[core.node];
  return out;
}

// The NUMA node of each worker.
std::vector<int> nodes_of(const BindingRequest& request, const std::vector<UsableCore>& cores) {
  const auto usable = cores_by_node(cores);
  std::vector<int> out;
  for (int i = 0; i < request.n_workers; ++i) {
    const auto local = static_cast<std::size_t>(i);
    const int of_gpu = local < request.gpu_nodes.size() ? request.gpu_nodes[local] : -1;
    out.push_back(usable.count(of_gpu) > 0 ? of_gpu : cores[share_begin(i, request.n_workers, cores.size())].node);
  }
  return out;
}

std::vector<WorkerCpus> bind_to_nodes(const std::vector<int>& nodes, const std::vector<UsableCore>& cores) {
  const auto n_cores = cores_by_node(cores);
  std::vector<WorkerCpus> out;
  for (const int node : nodes) {
    WorkerCpus worker;
    for (const auto& core : cores) {
      if (core.node == node) add_cpus(core, worker.cpus);
    }
    worker.place = "NUMA node " + std::to_string(node);
    worker.threads = n_cores.at(node) / static_cast<int>(std::count(nodes.begin(), nodes.end(), node));
    out.push_back(std::move(worker));
  }
  return out;
}

Error too_many(const std::string& option, const std::string& where, std::size_t n_workers, std::size_t n_cores) {
  return Error(Errc::kUsage, "",
               option + ": " + where + plural(n_workers, "worker") + " for " + plural(n_cores, "core") +
                   " that they may use")
      .with_hint("fewer workers there, or --oversubscribe to let them share cores, or --bind-to none");
}

}  // namespace

Result<std::vector<WorkerCpus>> bind_workers(const BindingRequest& request, const std::vector<Core>& cores,
                                             const std::vector<int>& usable, std::optional<double> quota) {
  const auto own = usable_cores(cores, usable);
  const auto n_workers = static_cast<std::size_t>(request.n_workers);
  const bool to_nodes = request.to == control::BindTo::kNuma;
  const std::string option = to_nodes ? "--bind-to numa" : "--bind-to core";
  if (own.empty()) return fail(Errc::kUnreachable, "", option + ": the host does not tell which CPUs it has");
  if (n_workers > own.size() && !request.shares_cores) return fail(too_many(option, "", n_workers, own.size()));

  std::vector<WorkerCpus> out;
  if (to_nodes) {
    const auto nodes = nodes_of(request, own);
    for (const auto& [node, n_cores] : cores_by_node(own)) {
      const auto n_here = std::count(nodes.begin(), nodes.end(), node);
      if (n_here <= n_cores || request.shares_cores) continue;
      return fail(too_many(option, "on NUMA node " + std::to_string(node) + " ", static_cast<std::size_t>(n_here),
                           static_cast<std::size_t>(n_cores)));
    }
    out = bind_to_nodes(nodes, own);
  } else {
    out = bind_to_cores(request.n_workers, own);
  }
  for (auto& worker : out) {
    std::sort(worker.cpus.begin(), worker.cpus.end());
    if (quota) worker.threads = std::min(worker.threads, static_cast<int>(*quota / request.n_workers));
    worker.threads = std::max(worker.threads, 1);
  }
  return out;
}

}  // namespace drun::agent
