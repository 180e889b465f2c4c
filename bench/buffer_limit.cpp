#include "bench/buffer_limit.h"

#include <algorithm>
#include <map>
#include <utility>

namespace drun::bench {

namespace {

// The part of a memory that one of the two buffers of each of `n` ranks may take.
std::uint64_t part(std::uint64_t bytes, int n) { return bytes / 10 * 4 / static_cast<std::uint64_t>(std::max(n, 1)); }

}  // namespace

std::uint64_t max_buffer_bytes(const RankMemory& memory) {
  const std::uint64_t on_host = part(memory.host_bytes, memory.n_on_host);
  if (memory.n_on_gpu == 0) return on_host;
  // Ranks that share a GPU, as DRUN_SHARED_GPU=1 allows, are staged through the host, which also needs pinned memory
  // for both buffers.
  return std::min(memory.n_on_gpu > 1 ? on_host / 2 : on_host, part(memory.gpu_bytes, memory.n_on_gpu));
}

std::vector<int> ranks_on_gpu(const std::vector<std::size_t>& host_of_rank, const std::vector<std::string>& gpus) {
  std::map<std::pair<std::size_t, std::string>, int> n_ranks;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) ++n_ranks[{host_of_rank[rank], gpus[rank]}];
  std::vector<int> out;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) out.push_back(n_ranks[{host_of_rank[rank], gpus[rank]}]);
  return out;
}

}  // namespace drun::bench
