// What looks bad in a pass of measurements, against what is usual in the same pass. Pure.
#pragma once

#include <set>
#include <vector>

#include "check/link_blame.h"
#include "netdetect/link_stats.h"

namespace drun::check {

// What is usual, and from where on a direction is out of the ordinary. Everything is relative to what the same pass
// measured, and the more uneven that was, the more is let pass.
struct Usual {
  double bits_per_second = 0, slow_below = 0;  // 0: nothing to compare with
  double loss_above = 1;
  double rtt_us = 0, far_above_us = 0, far_min_above_us = 0;  // 0: nothing to compare with
};

// Of a whole first pass.
// `one_machine`: all hosts are containers of one, so that rates are what its cores are doing at the moment.
Usual usual_of(const netdetect::Edges& edges, bool one_machine);
// Of pairs that are known to be good, in a pass where few were measured; no more lenient than `first`, from which it
// takes how uneven the network is.
Usual usual_of_controls(const netdetect::Edges& controls, const Usual& first);

bool slow(const netdetect::Edge& edge, const Usual& usual);
bool lossy(const netdetect::Edge& edge, const Usual& usual);
bool far(const netdetect::Edge& edge, const Usual& usual);

// Who is at fault for what, by kind.
struct Suspects {
  Blame slow, lossy, far;
  std::set<int> left_out;  // left_out_hosts(): they may be lossy, which only the second pass can show

  bool host(int h) const { return slow.host(h) || lossy.host(h) || far.host(h); }
  std::set<int> hosts() const;
  // Those to measure again: hosts() and left_out. The others are good to measure them with.
  std::set<int> doubted() const;
  bool good(int h) const { return !host(h) && !left_out.contains(h); }
  std::set<netdetect::HostPair> pairs() const;  // a < b
  bool empty() const { return doubted().empty() && pairs().empty(); }
};

Suspects suspects_of(const netdetect::Edges& edges, const Usual& usual);

}  // namespace drun::check
