// Measuring the way to another host: round trips, bandwidth, path MTU. Runs in each agent: a listener, and measurements
// against the listeners of others. Every byte between the two: docs/protocol.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/bytes.h"
#include "base/error.h"
#include "netdetect/link.h"
#include "netdetect/stopping.h"

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
};

struct LinkResult {
  std::uint32_t id = 0;
  std::string error;  // why something was not measured; what was stands beside it
  std::uint32_t n_round_trips = 0;
  double rtt_median_us = 0, rtt_p99_us = 0, rtt_min_us = 0;
  int mtu_forward = 0, mtu_backward = 0;  // to the target, from it; 0: not measured, or no datagram arrived
  Rate forward, backward;                 // to the target, from it
};

// Listens on a free port of every address, as ProbeListener does, with the same proof. Bounded: 256 connections, of
// which the oldest one that has proven nothing makes room; each ends by a deadline. Destroy it after stop() and join().
class LinkListener {
 public:
  static Result<std::unique_ptr<LinkListener>> start(const asio::any_io_executor& executor, std::string token);
  virtual ~LinkListener() = default;
  virtual int port() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

// Measures all targets at once; results are in the order of `targets`. A target that vanishes costs a few seconds over
// the times above, and is an error of that result alone. After stop() it returns soon.
Task<std::vector<LinkResult>> measure_links(std::vector<LinkTarget> targets, std::string token,
                                            std::shared_ptr<Stopping> stopping);

void encode(ByteWriter& out, const std::vector<LinkTarget>& targets);
std::vector<LinkTarget> decode_link_targets(ByteReader& in);
void encode(ByteWriter& out, const std::vector<LinkResult>& results);
std::vector<LinkResult> decode_link_results(ByteReader& in);

}  // namespace drun::netdetect
