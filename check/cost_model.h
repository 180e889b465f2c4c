// What an allreduce will cost on links that were measured: alpha (seconds per message), beta (seconds per byte) of the
// slowest link of each step, gamma (seconds per byte added up). Pure.
//
// Source of the formulas, for p ranks and n bytes: Thakur, Rabenseifner, Gropp: Optimization of Collective
// Communication Operations in MPICH, IJHPCA 19(1), 2005, section 4.5:
//   recursive doubling             log2(p) (alpha + n beta + n gamma)
//   halving, doubling (Rabenseifner)  2 log2(p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma
//   ring                           2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma
// Ranks beyond the largest power of two are taken in first and told the result last: 2 (alpha + n beta) more. libdrun's
// ring is one stream of bytes: alpha counts only where a step is shorter than what hides it (docs/collectives.md). With
// several ranks per host these reduce in memory first, and a part of the data goes over the network for each lane.
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
  double ring_seconds = 0, tree_seconds = 0;  // the same job, with these between the hosts
};

struct Prediction {
  std::size_t n_bytes = 0;  // of the gradients that were asked for
  double seconds = 0;
  double network_seconds = 0;  // what it takes between the hosts; at the same time memory inside them may take longer
  Algorithm algorithm = Algorithm::kRing;
  int n_hosts = 0;
  int slowest_from = -1, slowest_to = -1;  // the link that sets it; -1: none stands out
  double slowest_bits_per_second = 0;
  // The hosts without which it would be so much faster that it is worth saying; empty: none.
  std::vector<int> without;
  double seconds_without = 0;
  std::vector<CostPoint> curve;  // 4 B to 1 GiB, for the plot; n_bytes is one of its points, and may be the last
  // With a step time: share of the ideal speed that is left, if communication comes after the computation, and if all
  // of it is hidden behind the computation. 0: no step time.
  double step_seconds = 0, efficiency = 0, efficiency_overlapped = 0;
};

// What is not measured here is a guess that errs on the slow side for a server of today.
inline constexpr double kMemoryBytesPerSecond = 30e9;  // all cores of a host together, reads plus writes

struct CostInput {
  // By host index; 0: takes no part. The ring goes through the hosts in this order.
  std::vector<int> slots;
  double memory_bytes_per_second = kMemoryBytesPerSecond;
  int n_streams = 1;  // DRUN_STREAMS
  // By host index, or empty: its boot id, and the cores that it may use. Hosts with one boot id are containers of one
  // machine: they share its memory and its cores. "" and 0: unknown.
  std::vector<std::string> machines;
  std::vector<int> cores;
};

// Nothing is measured between two of the hosts: their other links say what they can do. `n_bytes` 0: curve only.
// An empty curve: no link at all was measured between hosts that take part, or there is but one host.
Prediction predict(const CostInput& input, const netdetect::LinkReport& links, std::size_t n_bytes,
                   double step_seconds = 0);

// "an allreduce of 100 MB takes about 128 ms on these 4 hosts; PACE; without gpu2: 12 ms". Empty if nothing was
// predicted. `pace`: what sets it, in words, with the figure by which the report's reader knows that link; may be
// empty.
std::string prediction_text(const Prediction& prediction, const std::vector<std::string>& names,
                            const std::string& pace);
// "with steps of 300 ms: 70 % of the ideal speed, 100 % if it all happens during the computation"; empty without a
// step.
std::string efficiency_text(const Prediction& prediction);

}  // namespace drun::check
