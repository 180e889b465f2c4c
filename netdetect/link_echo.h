// Measures round trips of a small message over one connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "netdetect/link_stream.h"

namespace drun::netdetect {

// `min_us` includes the warm-up. If frames are lost, there may be only a few round trips, all of which waited for a
// retransmission: `min_us` is then at most the minimum of the connection's TCP, which excludes those.
struct RoundTrips {
  std::uint32_t n = 0;
  double median_us = 0, p99_us = 0, min_us = 0;
};

// Percentiles by nearest rank. Pure.
RoundTrips summarize(std::vector<double> micros);

// Sends kEchoBytes and waits for them to come back, `n` times after a short warm-up; starts no round trip after
// `limit`. Waits briefly in the kernel, not in the event loop, which would add its own latency, but lets other
// coroutines run every 20 ms. Ends early, with fewer round trips, if the socket is closed.
Task<RoundTrips> measure_round_trips(LinkSocket socket, std::uint32_t n, std::chrono::milliseconds limit);

// The other end: sends each message back until the connection ends.
Task<void> echo(LinkSocket socket);

}  // namespace drun::netdetect
