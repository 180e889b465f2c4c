// Reads the kernel's figures of a TCP connection, and limits its rate.
#pragma once

#include <cstdint>

namespace drun::netdetect {

struct TcpCounts {
  std::uint64_t n_segments = 0;     // sent with payload, including retransmitted ones
  std::uint64_t n_retransmits = 0;  // of these, except those that the peer reported as duplicates (DSACK, RFC 2883)
};

TcpCounts tcp_counts(int socket);  // zeros if the kernel does not say

// The shortest round trip that TCP itself measured, without retransmitted segments; 0: the kernel does not say.
double tcp_shortest_round_trip_us(int socket);

// Limits the rate at which the socket sends. TCP paces itself, with any queueing discipline.
void limit_pace(int socket, std::uint64_t bytes_per_second);

}  // namespace drun::netdetect
