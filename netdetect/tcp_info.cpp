// A file of its own: <linux/tcp.h>, whose tcp_info is complete, can't be included together with <netinet/tcp.h>.
#include "netdetect/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace drun::netdetect {

TcpCounts tcp_counts(int socket) {
  TcpCounts counts;
  struct tcp_info info = {};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return counts;
  if (size < offsetof(struct tcp_info, tcpi_data_segs_out) + sizeof info.tcpi_data_segs_out) return counts;
  counts.n_segments = info.tcpi_data_segs_out;
  counts.n_retransmits = info.tcpi_total_retrans;
  return counts;
}

void limit_pace(int socket, std::uint64_t bytes_per_second) {
  const std::uint64_t wide = std::max<std::uint64_t>(bytes_per_second, 1);
  if (::setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &wide, sizeof wide) == 0) return;
  const auto narrow = static_cast<std::uint32_t>(std::min<std::uint64_t>(wide, 0xfffffffeu));  // before Linux 4.20
  ::setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &narrow, sizeof narrow);
}

}  // namespace drun::netdetect
