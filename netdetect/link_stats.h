// The measurements of a pass by direction, and the robust figures that verdicts are made of. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/link.h"

namespace drun::netdetect {

// One direction of a pair of hosts, all measurements of it taken together.
struct Edge {
  double bits_per_second = 0;                       // the best of all numbers of streams and repeats; 0: not measured
  double one_stream = 0;                            // the best with one connection
  double several_streams = 0;                       // the best with more
  std::uint64_t n_segments = 0, n_retransmits = 0;  // of paced measurements alone, if they are enough to tell
  bool paced = false;
  double rtt_us = 0, rtt_min_us = 0;  // of the pair; 0: not measured
  int path_mtu = 0;
  std::string error;

  bool failed() const { return !error.empty() && bits_per_second <= 0; }
  double loss() const {  // share of segments that had to be sent again
    return n_segments == 0 ? 0 : static_cast<double>(n_retransmits) / static_cast<double>(n_segments);
  }
};

using HostPair = std::pair<int, int>;  // from, to
using Edges = std::map<HostPair, Edge>;

// A pair that was measured several times gets its best rate and round trip: chance makes links slower, never faster.
Edges edges_of(const std::vector<Link>& links);

// The value below which `share` of the values are (nearest rank, rounded up); 0 of none.
double quantile(std::vector<double> values, double share);
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// What a host with nothing wrong moves here: of each host the upper quartile of its links, of these the (upper) median.
// Not the median of all links: two slow hosts of four spoil five of six links.
double usual_rate(const Edges& edges);
// Hosts that are far slower than others with every peer with which they were measured over so many connections, and
// these are enough to know: to measure them with the rest would cost the time of all.
std::set<int> crawling_hosts(const std::vector<Link>& links, int n_streams);
// Hosts with most of whose peers there was no time to measure anything, and much less time than with others: where
// frames are lost each connection takes its time, and such a host comes last with everybody. What failed in another way
// does not count.
std::set<int> left_out_hosts(const Edges& edges);
// How even a healthy part of this network is, 0 to 1: the lower fifth of the links between hosts that are not slow as a
// whole, against the usual rate.
double evenness(const Edges& edges, double usual);

}  // namespace drun::netdetect
