// Measurements between two hosts, at their chosen addresses. Pure data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace drun::netdetect {

// Throughput from one host to another while the opposite direction is loaded, too.
struct Rate {
  int n_streams = 0;                // TCP connections at once
  double bits_per_second = 0;       // payload that arrived; 0: not measured
  double seconds = 0;               // duration of the measurement
  std::uint64_t n_segments = 0;     // sent by the sender's TCP; 0: the kernel does not say
  std::uint64_t n_retransmits = 0;  // of these
};

// One direction of a pair.
struct Direction {
  std::vector<Rate> rates;  // by n_streams, the single stream first; empty: not measured
  int path_mtu = 0;         // bytes; the largest IP packet that passed with DF set; 0: not measured
  std::string error;        // why nothing was measured; "" = it was, or was not tried
  Rate paced;               // limited far below `rates`, so that no full queue drops packets; 0 segments: not measured
};

struct Link {
  int a = 0, b = 0;                 // host indices; a < b
  Direction forward;                // a to b
  Direction backward;               // b to a
  std::uint32_t n_round_trips = 0;  // of a small message over one open connection; 0: none
  double rtt_median_us = 0, rtt_p99_us = 0, rtt_min_us = 0;
  bool again = false;  // measured in the second pass, without other traffic of drun on the network
};

// Rates with all hosts active at once, each sending to the next one and receiving from the previous one, as in a ring
// allreduce. Shows switches that are oversubscribed and machines with too few cores, even if their links are fast one
// by one.
struct RingRate {
  std::vector<int> order;               // host indices; order[i] sends to order[i + 1]
  std::vector<double> bits_per_second;  // by position in `order`: the rate at which order[i] sent
  double seconds = 0;
};

struct LinkReport {
  double max_rate = 0;            // limit of all measurements, bits/s; 0: none
  std::vector<Link> links;        // first pass
  std::vector<Link> second_pass;  // anomalies with good hosts, one pair at a time, and good pairs to compare with
  RingRate ring;                  // order empty: not measured
};

}  // namespace drun::netdetect
