// Round trips of a small message over one connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "netdetect/link_stream.h"

namespace drun::netdetect {

// `min_us` is of the first few, too. Where frames are lost there may be one round trip, which waited for what was sent
// again: of few the shortest is that of the connection's TCP, which leaves those out.
struct RoundTrips {
  std::uint32_t n = 0;
  double median_us = 0, p99_us = 0, min_us = 0;
};

// Pure; nearest rank.
RoundTrips summarize(std::vector<double> micros);

// Sends kEchoBytes and waits for them to come back, `n` times, the first few not counted; no new one begins after
// `limit`. Short waits are spent in the kernel, not in the event loop, which would add its own time; every few
// milliseconds everything else has its turn. The socket's close ends it: then there may be fewer.
Task<RoundTrips> measure_round_trips(LinkSocket socket, std::uint32_t n, std::chrono::milliseconds limit);

// The other end: until the socket ends.
Task<void> echo(LinkSocket socket);

}  // namespace drun::netdetect
