// The measurements of a pass by direction, and the robust statistics that verdicts are based on. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/link.h"

namespace drun::netdetect {

// One direction of a pair of hosts, with all of its measurements combined.
struct Edge {
  double bits_per_second = 0;                       // the best of all numbers of streams and repeats; 0: not measured
  double one_stream = 0;                            // the best with one connection
  double several_streams = 0;                       // the best with more
  std::uint64_t n_segments = 0, n_retransmits = 0;  // of paced measurements only, if there are enough
  bool paced = false;
  double rtt_us = 0, rtt_min_us = 0;  // of the pair; 0: not measured
  int path_mtu = 0;
  std::string error;

  bool failed() const { return !error.empty() && bits_per_second <= 0; }
  double loss() const {  // share of segments that were retransmitted
    return n_segments == 0 ? 0 : static_cast<double>(n_retransmits) / static_cast<double>(n_segments);
  }
};

using HostPair = std::pair<int, int>;  // from, to
using Edges = std::map<HostPair, Edge>;

// Combines measurements by direction. A pair that was measured several times gets its best rate and round trip,
// because chance makes links slower, never faster.
Edges edges_of(const std::vector<Link>& links);

// The quantile `share`, 0 to 1, of the values (nearest rank, rounded up); 0 if there are none.
double quantile(std::vector<double> values, double share);
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// The rate of a healthy host: the upper quartile of each host's links, and of these the (upper) median. Not the
// median of all links, because two slow hosts of four affect five of six links.
double usual_rate(const Edges& edges);
// Hosts that are far slower than others with every peer with which they were measured over `n_streams` connections,
// if there are enough of these peers. Measuring such a host with the rest would cost time of all hosts.
std::set<int> crawling_hosts(const std::vector<Link>& links, int n_streams);
// Hosts that were not measured with most of their peers for lack of time, and far more often than others: with lost
// frames each connection takes long, so such a host comes last with all peers. Pairs that failed for another reason
// don't count.
std::set<int> left_out_hosts(const Edges& edges);
// Evenness of the healthy part of the network, 0 to 1: the lower fifth of the links between hosts that are not slow
// as a whole, relative to the usual rate.
double evenness(const Edges& edges, double usual);

}  // namespace drun::netdetect
