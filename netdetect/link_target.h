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

// One measurement. A part whose fields are 0 or false is skipped; the others run one after the other.
struct LinkTarget {
  std::uint32_t id = 0;  // chosen by the caller, returned in the result
  std::string address;   // text form
  std::uint16_t port = 0;
  std::string source;  // our address to measure from, text form; "" = the kernel's choice
  std::uint32_t n_round_trips = 0;
  std::uint32_t round_trips_ms = 0;  // no round trip begins after that
  bool path_mtu = false;
  std::uint32_t n_streams = 0;
  std::uint32_t time_ms = 0;      // of the streams; the first quarter is warm-up and does not count
  std::uint32_t begin_in_ms = 0;  // from the call to the start of the streams; they start later if they are not ready
  bool sends = true;              // to the target
  bool receives = true;           // from the target
  std::uint64_t max_rate = 0;     // bits/s in each direction over all streams; 0 = no limit
  // Payload of each segment, in bytes; 0 = TCP's choice. If set, no two segments share a frame, as segments below the
  // interface's MTU or with segmentation offload would, so that each is lost by itself.
  std::uint16_t segment_bytes = 0;
};

struct LinkResult {
  std::uint32_t id = 0;
  std::string error;  // why a part was not measured; the other parts are valid
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
