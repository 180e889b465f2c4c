// From which sizes on libdrun makes an allreduce in another way: here, because `drun check` predicts what it will cost.
// docs/collectives.md has the algorithms. The same on all ranks: the sizes decide who talks with whom.
#pragma once

#include <algorithm>
#include <cstddef>

namespace drun {

// Between ranks over TCP, where measured times cross (docs/benchmarks.md): recursive doubling up to the first, as few
// steps count for more than few bytes, and of two ranks it is a single step that moves no more than the others; the
// ring from the second on, as it counts more that bytes flow all the time than that a ring has the most steps, the more
// the more ranks there are; halving and doubling between them.
constexpr std::size_t doubling_bytes(std::size_t n_ranks) { return (n_ranks > 2 ? 16u : 128u) << 10; }
constexpr std::size_t ring_bytes(std::size_t n_ranks) { return n_ranks * (16u << 10); }

// Several ranks per host. Up to here one rank of each host goes to the network for all, and few waits count for more
// than the use of all cores.
constexpr std::size_t kOneLaneBytes = 32u << 10;
// A lane with more goes in pieces of this size, in one ring: memory and network work at the same time. At least so much
// for each host, as a piece is divided among these.
constexpr std::size_t kLanePieceBytes = 256u << 10, kLeastLanePiecePerHost = 64u << 10;

constexpr std::size_t lane_piece_bytes(std::size_t n_hosts) {
  return std::max(kLanePieceBytes, n_hosts * kLeastLanePiecePerHost);
}

}  // namespace drun
