// The bound on the speed of a collective: the bytes that must be moved, over the rate of what moves them. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/kind.h"

namespace drun::bench {

// Bytes that all ranks of one host together read and write, if every message goes through shared memory once: copied
// in (2), copied out (2), and reduced in between by each rank for its part (reads all, writes one). `buffers`: in
// their own buffers; `between`: in the memory that they share, which is reused. `n_bytes` is the size in the table.
// 0: no bound.
struct MemoryTraffic {
  double buffers = 0, between = 0;
};
MemoryTraffic memory_traffic(Kind kind, double n_bytes, int n_ranks);

// Bytes that must pass the busiest NIC in one direction, if each host uses one NIC and sends nothing twice.
// `ranks_of_host`: number of ranks on each host; `root_host` matters only to rooted kinds. 0: no bound.
double nic_traffic(Kind kind, double n_bytes, const std::vector<int>& ranks_of_host, std::size_t root_host);

enum class BoundKind { kUnknown, kMemory, kLineRate };

struct Bound {
  BoundKind kind = BoundKind::kUnknown;
  double bytes_per_second = 0;
  double between_bytes_per_second = 0;  // for kMemory: in memory that ranks share; 0: the same
};

// The time of the bound in percent of `seconds`; negative: unknown.
double percent_of_bound(const Bound& bound, Kind kind, double n_bytes, const std::vector<int>& ranks_of_host,
                        std::size_t root_host, double seconds);

}  // namespace drun::bench
