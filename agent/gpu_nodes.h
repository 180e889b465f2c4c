// Which NUMA node each NVIDIA GPU of this machine is attached to.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace drun::agent {

struct GpuNode {
  std::string uuid;  // "GPU-..."; "" = the driver does not tell
  int node = -1;     // -1: the firmware does not tell
};

// By the number that nvidia-smi gives them: the order of their PCI addresses. From the driver's files; empty without
// it. `root` stands before every path that is read: "" but for tests.
std::vector<GpuNode> read_gpu_nodes(const std::string& root);

// For each worker of the host, by local rank, the node of its GPU, or -1. Its GPU is the one that the host list names
// for it (`named`, as Prepare::gpus), else the one of its local rank in CUDA_VISIBLE_DEVICES of `environment`, else the
// one that has its local rank as number; with fewer of them than workers none is known.
std::vector<int> nodes_of_workers(const std::vector<std::string>& named, const std::vector<GpuNode>& gpus,
                                  const std::map<std::string, std::string>& environment);

}  // namespace drun::agent
