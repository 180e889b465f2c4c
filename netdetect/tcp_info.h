// What the kernel knows of a TCP connection.
#pragma once

#include <cstdint>

namespace drun::netdetect {

struct TcpCounts {
  std::uint64_t n_segments = 0;     // with payload, that were sent, retransmitted ones included
  std::uint64_t n_retransmits = 0;  // of these, but for those that the other end said it had twice (DSACK, RFC 2883)
};

TcpCounts tcp_counts(int socket);  // zeros if the kernel does not say

// The shortest round trip that TCP itself saw, of nothing that was sent twice; 0: the kernel does not say.
double tcp_shortest_round_trip_us(int socket);

// No more than so many bytes per second are sent: TCP paces itself, whatever the queueing discipline.
void limit_pace(int socket, std::uint64_t bytes_per_second);

}  // namespace drun::netdetect
