// How large the buffers of a measurement may be. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace drun::bench {

// The memory that a rank shares with others.
struct RankMemory {
  std::uint64_t host_bytes = 0;  // available on its host
  int n_on_host = 1;             // ranks on that host
  std::uint64_t gpu_bytes = 0;   // free on the GPU whose memory is measured
  int n_on_gpu = 0;              // ranks that use that GPU; 0: the host's memory is measured
};

// Max size of one of the two buffers of a rank. All buffers together take four fifths of a host's and of a GPU's
// memory at most.
std::uint64_t max_buffer_bytes(const RankMemory& memory);

// For each rank the number of ranks on its host that use the same GPU. Device numbers don't identify a GPU: each of the
// workers of `gpus=0,1` sees one GPU, number 0. `gpus`: by rank, what identifies its GPU on its host.
std::vector<int> ranks_on_gpu(const std::vector<std::size_t>& host_of_rank, const std::vector<std::string>& gpus);

}  // namespace drun::bench
