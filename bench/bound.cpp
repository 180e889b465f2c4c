#include "bench/bound.h"

#include <algorithm>
#include <numeric>

namespace drun::bench {

MemoryTraffic memory_traffic(Kind kind, double n_bytes, int n_ranks) {
  const double p = n_ranks;
  if (n_ranks < 2) return {};
  switch (kind) {
    case Kind::kAllReduce:
      return {n_bytes * 2 * p, n_bytes * (3 * p + 1)};
    case Kind::kReduceScatter:
      return {n_bytes * (p + 1), n_bytes * 2 * p};
    case Kind::kReduce:
      return {n_bytes * (p + 1), n_bytes * (2 * p + 2)};
    case Kind::kBroadcast:
    case Kind::kAllGather:
      return {n_bytes * p, n_bytes * p};
    case Kind::kAlltoall:
      return {n_bytes * 2 * (p - 1), n_bytes * 2 * (p - 1)};
    case Kind::kGather:
    case Kind::kScatter:
      return {n_bytes * 2 * (p - 1) / p, n_bytes * 2 * (p - 1) / p};
    case Kind::kSendRecv:
      return {n_bytes * 2 * p, n_bytes * 2 * p};
    case Kind::kBarrier:
      break;
  }
  return {};
}

double nic_traffic(Kind kind, double n_bytes, const std::vector<int>& ranks_of_host, std::size_t root_host) {
  const double hosts = static_cast<double>(ranks_of_host.size());
  if (ranks_of_host.size() < 2) return 0;
  const double p = std::accumulate(ranks_of_host.begin(), ranks_of_host.end(), 0.0);
  const double fewest = *std::min_element(ranks_of_host.begin(), ranks_of_host.end());
  switch (kind) {
    case Kind::kAllReduce:
      return n_bytes * 2 * (hosts - 1) / hosts;
    case Kind::kReduceScatter:
    case Kind::kAllGather:
      // The host with the fewest ranks sends, or receives, the blocks of all other hosts.
      return n_bytes * (p - fewest) / p;
    case Kind::kReduce:
    case Kind::kBroadcast:
    case Kind::kSendRecv:
      return n_bytes;
    case Kind::kAlltoall: {
      double most = 0;
      for (const double own : ranks_of_host) most = std::max(most, own * (p - own) / p);
      return n_bytes * most;
    }
    case Kind::kGather:
    case Kind::kScatter:
      return n_bytes * (p - ranks_of_host[root_host]) / p;
    case Kind::kBarrier:
      break;
  }
  return 0;
}

double percent_of_bound(const Bound& bound, Kind kind, double n_bytes, const std::vector<int>& ranks_of_host,
                        std::size_t root_host, double seconds) {
  if (bound.bytes_per_second <= 0 || seconds <= 0) return -1;
  double least = 0;
  if (bound.kind == BoundKind::kMemory) {
    const int n_ranks = std::accumulate(ranks_of_host.begin(), ranks_of_host.end(), 0);
    const MemoryTraffic traffic = memory_traffic(kind, n_bytes, n_ranks);
    const double between = bound.between_bytes_per_second > 0 ? bound.between_bytes_per_second : bound.bytes_per_second;
    least = traffic.buffers / bound.bytes_per_second + traffic.between / between;
  } else if (bound.kind == BoundKind::kLineRate) {
    least = nic_traffic(kind, n_bytes, ranks_of_host, root_host) / bound.bytes_per_second;
  }
  return least > 0 ? 100 * least / seconds : -1;
}

}  // namespace drun::bench
