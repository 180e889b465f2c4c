#include "base/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <climits>

#include "base/fd.h"

namespace drun {
namespace {

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
}

TEST(TcpSocket, BreaksAConnectionAfterTheGivenSilence) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  tune_tcp(fd.get(), std::chrono::seconds(305));
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), 305000);
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE), 10);
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(fd.get(), SOL_SOCKET, SO_KEEPALIVE), 1);
  tune_tcp(fd.get(), std::chrono::hours(24 * 365), std::chrono::seconds(20));
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), INT_MAX);
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE), 20);
}

}  // namespace
}  // namespace drun
