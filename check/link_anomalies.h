// Finds measurements that look bad compared with the usual ones of the same pass. Pure.
#pragma once

#include <set>
#include <vector>

#include "check/link_attribution.h"
#include "netdetect/link_stats.h"

namespace drun::check {

// The usual figures of a pass, and the thresholds beyond which a direction is unusual. All are relative to the same
// pass, and the more uneven it is, the more lenient they are.
struct Usual {
  double bits_per_second = 0, slow_below = 0;  // 0: nothing to compare with
  double loss_above = 1;
  double rtt_us = 0, far_above_us = 0, far_min_above_us = 0;  // 0: nothing to compare with
};

// The usual figures of a whole first pass.
// `one_machine`: all hosts are containers of one machine, so that rates depend on the load of its cores.
Usual usual_of(const netdetect::Edges& edges, bool one_machine);
// The usual figures of pairs that are known to be good, in a pass that measured few. No more lenient than `first`,
// which says how uneven the network is.
Usual usual_of_controls(const netdetect::Edges& controls, const Usual& first);

bool slow(const netdetect::Edge& edge, const Usual& usual);
bool lossy(const netdetect::Edge& edge, const Usual& usual);
bool far(const netdetect::Edge& edge, const Usual& usual);

// Faulty hosts and pairs, by kind of problem.
struct Anomalies {
  Attribution slow, lossy, far;
  std::set<int> left_out;  // left_out_hosts(): they may be lossy, which only the second pass can show

  bool host(int h) const { return slow.host(h) || lossy.host(h) || far.host(h); }
  std::set<int> hosts() const;
  // The hosts to measure again: hosts() and left_out. The others are good peers to measure them with.
  std::set<int> doubted() const;
  bool good(int h) const { return !host(h) && !left_out.contains(h); }
  std::set<netdetect::HostPair> pairs() const;  // a < b
  bool empty() const { return doubted().empty() && pairs().empty(); }
};

Anomalies find_anomalies(const netdetect::Edges& edges, const Usual& usual);

}  // namespace drun::check
