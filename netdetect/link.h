// What was measured between two hosts, at the addresses that were chosen for them. Pure data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace drun::netdetect {

// How fast bytes went from one host to the other while as many as possible went the other way, too.
struct Rate {
  int n_streams = 0;                // TCP connections at once
  double bits_per_second = 0;       // payload that arrived; 0: not measured
  double seconds = 0;               // that the measurement took
  std::uint64_t n_segments = 0;     // that the sender's TCP sent; 0: the kernel does not say
  std::uint64_t n_retransmits = 0;  // of these
};

// One direction of a pair.
struct Direction {
  std::vector<Rate> rates;  // by n_streams, the single stream first; empty: not measured
  int path_mtu = 0;         // bytes; the largest IP packet that passed with DF set; 0: not measured
  std::string error;        // why nothing was measured; "" = it was, or was not tried
  Rate paced;               // held far below these, so that nothing is lost in full queues; 0 segments: not measured
};

struct Link {
  int a = 0, b = 0;                 // host indices; a < b
  Direction forward;                // a to b
  Direction backward;               // b to a
  std::uint32_t n_round_trips = 0;  // of a small message over one connection that was open already; 0: none
  double rtt_median_us = 0, rtt_p99_us = 0, rtt_min_us = 0;
  bool again = false;  // measured in the second pass, alone, with nothing else on the network of drun's
};

// All hosts at once, each sending to the next one and receiving from the one before it, as a ring allreduce does:
// what a switch that is oversubscribed, or a machine with too few cores, makes of links that are fast one by one.
struct RingRate {
  std::vector<int> order;               // host indices; order[i] sends to order[i + 1]
  std::vector<double> bits_per_second;  // by position in `order`: what order[i] sent on
  double seconds = 0;
};

struct LinkReport {
  double max_rate = 0;            // bits/s that measurements were held to; 0: they were not
  std::vector<Link> links;        // first pass
  std::vector<Link> second_pass;  // suspects with good hosts, one pair at a time, and good pairs to compare with
  RingRate ring;                  // order empty: not measured
};

}  // namespace drun::netdetect
