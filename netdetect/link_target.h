// Links that drun asks an agent to measure, and the results. Carried by the control channel; contains no Asio.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "netdetect/link.h"

namespace drun::netdetect {

inline constexpr std::uint32_t kMaxStreams = 16;
inline constexpr std::uint32_t kMaxLinkTime = 30000;  // ms, of one bandwidth measurement

// One measurement: what is 0 or false is left out. The parts run one after the other.
struct LinkTarget {
  std::uint32_t id = 0;  // chosen by the caller, returned in the result
  std::string address;   // text form
  std::uint16_t port = 0;
  std::string source;  // our address to measure from, text form; "" = the kernel's choice
  std::uint32_t n_round_trips = 0;
  std::uint32_t round_trips_ms = 0;  // no new one begins after that
  bool path_mtu = false;
  std::uint32_t n_streams = 0;
  std::uint32_t time_ms = 0;      // of the streams; the first quarter is warm-up and does not count
  std::uint32_t begin_in_ms = 0;  // the streams begin so long after the call, or when they are ready, if that is later
  bool sends = true;              // to the target
  bool receives = true;           // from the target
  std::uint64_t max_rate = 0;     // bits/s in each direction over all streams; 0 = as fast as it goes
  // Payload of each segment; 0 = as TCP likes. Else no two of them share a frame, as they do below the interface's
  // MTU or where the card cuts them (segmentation offload), so that each is lost by itself.
  std::uint16_t segment_bytes = 0;
};

struct LinkResult {
  std::uint32_t id = 0;
  std::string error;  // why something was not measured; what was stands beside it
  std::uint32_t n_round_trips = 0;
  double rtt_median_us = 0, rtt_p99_us = 0, rtt_min_us = 0;
  int mtu_forward = 0, mtu_backward = 0;  // to the target, from it; 0: not measured, or no datagram arrived
  Rate forward, backward;                 // to the target, from it
};

void encode(ByteWriter& out, const std::vector<LinkTarget>& targets);
std::vector<LinkTarget> decode_link_targets(ByteReader& in);
void encode(ByteWriter& out, const std::vector<LinkResult>& results);
std::vector<LinkResult> decode_link_results(ByteReader& in);

}  // namespace drun::netdetect
