// How fast a collective could be: what has to be moved, over what moves it. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/kind.h"

namespace drun::bench {

// Bytes that the ranks of one host read and write, all together, if every message goes through memory once: copied in
// (2), copied out (2), reduced in between by each rank for its part (reads all, writes one). `buffers`: of their own
// buffers; `between`: of what they share, which is used again and again. `n_bytes` is the size as the table has it.
// 0: no bound.
struct MemoryTraffic {
  double buffers = 0, between = 0;
};
MemoryTraffic memory_traffic(Kind kind, double n_bytes, int n_ranks);

// Bytes that have to pass the busiest NIC in one direction, if hosts use one each and send nothing twice.
// `ranks_of_host` has the number of each host's ranks; `root_host` matters to rooted kinds. 0: no bound.
double nic_traffic(Kind kind, double n_bytes, const std::vector<int>& ranks_of_host, std::size_t root_host);

enum class BoundKind { kUnknown, kMemory, kLineRate };

struct Bound {
  BoundKind kind = BoundKind::kUnknown;
  double bytes_per_second = 0;
  double between_bytes_per_second = 0;  // of kMemory, for what ranks share; 0: the same
};

// The time of the bound in percent of `seconds`; negative: not known.
double percent_of_bound(const Bound& bound, Kind kind, double n_bytes, const std::vector<int>& ranks_of_host,
                        std::size_t root_host, double seconds);

}  // namespace drun::bench
