// A separate file: <linux/tcp.h>, whose tcp_info is complete, can't be included together with <netinet/tcp.h>.
#include "netdetect/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace drun::netdetect {

namespace {

// False if the kernel does not fill in the first `n_bytes` of `info`.
bool get_info(int socket, struct tcp_info& info, std::size_t n_bytes) {
  socklen_t size = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= n_bytes;
}

}  // namespace

TcpCounts tcp_counts(int socket) {
  TcpCounts counts;
  struct tcp_info info = {};
  constexpr std::size_t kWanted = offsetof(struct tcp_info, tcpi_data_segs_out) + sizeof info.tcpi_data_segs_out;
  if (!get_info(socket, info, kWanted)) return counts;
  counts.n_segments = info.tcpi_data_segs_out;
  // Fields that an older kernel does not have stay 0.
  counts.n_retransmits = info.tcpi_total_retrans - std::min(info.tcpi_dsack_dups, info.tcpi_total_retrans);
  return counts;
}

double tcp_shortest_round_trip_us(int socket) {
  struct tcp_info info = {};
  constexpr std::size_t kWanted = offsetof(struct tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt;
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();  // before the first
  if (!get_info(socket, info, kWanted) || info.tcpi_min_rtt == kNone) return 0;
  return info.tcpi_min_rtt;
}

void limit_pace(int socket, std::uint64_t bytes_per_second) {
  const std::uint64_t wide = std::max<std::uint64_t>(bytes_per_second, 1);
  if (::setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &wide, sizeof wide) == 0) return;
  const auto narrow = static_cast<std::uint32_t>(std::min<std::uint64_t>(wide, 0xfffffffeu));  // before Linux 4.20
  ::setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &narrow, sizeof narrow);
}

}  // namespace drun::netdetect
