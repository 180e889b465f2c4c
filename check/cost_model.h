// Predicts the cost of an allreduce on measured links: alpha (seconds per message), beta (seconds per byte) of the
// slowest link of each step, gamma (seconds per reduced byte). Pure.
//
// Source of the formulas, for p ranks and n bytes: Thakur, Rabenseifner, Gropp: Optimization of Collective
// Communication Operations in MPICH, IJHPCA 19(1), 2005, section 4.5:
//   recursive doubling             log2(p) (alpha + n beta + n gamma)
//   halving, doubling (Rabenseifner)  2 log2(p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma
//   ring                           2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma
// Ranks beyond the largest power of two are folded in first and receive the result last: 2 (alpha + n beta) more.
// libdrun's ring is one stream of bytes: alpha counts only where a step is too short to hide it
// (docs/collectives.md). Several ranks of a host reduce in memory first; then each lane sends a part of the data over
// the network.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "netdetect/link.h"

namespace drun::check {

enum class Algorithm { kRing, kTree, kHierarchical };

struct CostPoint {
  std::size_t n_bytes = 0;
  double seconds = 0;                         // of the algorithm that libdrun would use
  double ring_seconds = 0, tree_seconds = 0;  // the same job, with these algorithms between the hosts
};

struct Prediction {
  std::size_t n_bytes = 0;  // of the gradients, as requested
  double seconds = 0;
  double network_seconds = 0;  // time between the hosts; memory inside them works at the same time, and may take longer
  Algorithm algorithm = Algorithm::kRing;
  int n_hosts = 0;
  int slowest_from = -1, slowest_to = -1;  // the link that limits it; -1: none stands out
  double slowest_bits_per_second = 0;
  // Hosts without which it would take at most half the time; empty: none.
  std::vector<int> without;
  double seconds_without = 0;
  std::vector<CostPoint> curve;  // 4 B to 1 GiB, for the plot; n_bytes is one of its points, and may be the last
  // With a step time: the share of the ideal speed that is left if communication follows the computation, and if it
  // overlaps with the computation as far as possible. 0: no step time.
  double step_seconds = 0, efficiency = 0, efficiency_overlapped = 0;
};

// Not measured: a guess on the slow side for current servers.
inline constexpr double kMemoryBytesPerSecond = 30e9;  // all cores of a host together, reads plus writes

struct CostInput {
  // By host index; 0: takes no part. The ring goes through the hosts in this order.
  std::vector<int> slots;
  double memory_bytes_per_second = kMemoryBytesPerSecond;
  int n_streams = 1;  // DRUN_STREAMS
  // By host index, or empty: its boot id, and the number of cores that it may use. Hosts with the same boot id are
  // containers of one machine and share its memory and cores. "" and 0: unknown.
  std::vector<std::string> machines;
  std::vector<int> cores;
};

// If two hosts have no measurement between them, their other links serve as an estimate. `n_bytes` 0: curve only. The
// curve is empty if no link was measured, or if fewer than two hosts take part.
Prediction predict(const CostInput& input, const netdetect::LinkReport& links, std::size_t n_bytes,
                   double step_seconds = 0);

// "an allreduce of 100 MB takes about 128 ms on these 4 hosts; PACE; without gpu2: 12 ms". Empty if nothing was
// predicted. `pace`: a text on the link that limits it, with the figure that the report shows for that link; may be
// empty.
std::string prediction_text(const Prediction& prediction, const std::vector<std::string>& names,
                            const std::string& pace);
// "with steps of 300 ms: 70 % of the ideal speed, 100 % if it all happens during the computation"; empty without a
// step.
std::string efficiency_text(const Prediction& prediction);

}  // namespace drun::check
