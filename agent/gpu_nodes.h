// The NVIDIA GPUs of this machine, and the NUMA node that each is attached to.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace drun::agent {

struct GpuNode {
  std::string uuid;  // "GPU-..."; "" = not reported by the driver
  int node = -1;     // -1: not reported by the firmware
};

// The GPUs by nvidia-smi's number, which is the order of their PCI addresses. Reads the driver's files; empty without
// the driver. `root` is prepended to every path that is read; "" except in tests.
std::vector<GpuNode> read_gpu_nodes(const std::string& root);

// The number of GPUs, without asking the driver.
std::size_t count_gpus(const std::string& root);

// The NUMA node of each worker's GPU, by local rank; -1 if unknown. A worker's GPU is the one that the host list
// names for it (`named`, as Prepare::gpus), else the entry at its local rank in CUDA_VISIBLE_DEVICES of
// `environment`, else the GPU whose number is its local rank. If fewer GPUs are visible than there are workers, only
// named ones are known.
std::vector<int> nodes_of_workers(const std::vector<std::string>& named, const std::vector<GpuNode>& gpus,
                                  const std::map<std::string, std::string>& environment);

// The words of `named` (as Prepare::gpus) for which there is certainly no GPU: a number that is too large, or a UUID
// that none has. Empty without the driver's files.
std::vector<std::string> missing_gpus(const std::vector<std::string>& named, const std::vector<GpuNode>& gpus);

}  // namespace drun::agent
