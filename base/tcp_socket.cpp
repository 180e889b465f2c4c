#include "base/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>

namespace drun {

void tune_tcp(int fd, std::chrono::milliseconds user_timeout, std::chrono::seconds idle) {
  const auto set = [fd](int level, int name, long long value) {
    const int number = static_cast<int>(std::min<long long>(value, INT_MAX));
    (void)::setsockopt(fd, level, name, &number, sizeof number);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle.count());
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout.count());
}

}  // namespace drun
