// Message sizes at which libdrun switches the allreduce algorithm (docs/collectives.md). Shared with the cost model of
// `drun check`. All ranks must use the same values, because the algorithm decides which ranks exchange data.
#pragma once

#include <algorithm>
#include <cstddef>

namespace drun::runtime {

// For ranks over TCP, where measured times cross (docs/benchmarks.md). Up to doubling_bytes() recursive doubling: it
// has the fewest steps, and between two ranks its single step moves no more bytes than the other algorithms. From
// ring_bytes() on the ring: it keeps bytes flowing all the time, at the price of the most steps, which grow with the
// number of ranks. Between the two sizes recursive halving and doubling.
constexpr std::size_t doubling_bytes(std::size_t n_ranks) { return (n_ranks > 2 ? 16u : 128u) << 10; }
constexpr std::size_t ring_bytes(std::size_t n_ranks) { return n_ranks * (16u << 10); }

// For several ranks per host. Up to this size one rank of each host does the network transfer for all ranks of its
// host: fewer waits save more time than the use of all cores.
constexpr std::size_t kOneLaneBytes = 32u << 10;
// A lane with more bytes is sent in pieces of this size, in one ring, so that memory and network work at the same time.
// A piece is divided among the hosts, so it has at least kMinLanePiecePerHost for each.
constexpr std::size_t kLanePieceBytes = 256u << 10, kMinLanePiecePerHost = 64u << 10;

constexpr std::size_t lane_piece_bytes(std::size_t n_hosts) {
  return std::max(kLanePieceBytes, n_hosts * kMinLanePiecePerHost);
}

}  // namespace drun::runtime
