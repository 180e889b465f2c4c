#include "agent/reserved_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace drun::agent {
namespace {

// The result of binding to that port of 127.0.0.1; 0, or errno.
int bind_to(std::uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 ? 0 : errno;
}

TEST(ReservePort, NothingElseGetsThePortUntilItIsReleased) {
  auto reserved = reserve_port("127.0.0.1");
  ASSERT_TRUE(reserved.has_value());
  EXPECT_NE(reserved->port, 0);
  EXPECT_EQ(bind_to(reserved->port), EADDRINUSE);
  reserved->socket.reset();
  EXPECT_EQ(bind_to(reserved->port), 0);
}

TEST(ReservePort, RejectsWhatIsNotAnAddressOfThisHost) {
  EXPECT_FALSE(reserve_port("").has_value());
  EXPECT_FALSE(reserve_port("localhost").has_value());
  EXPECT_FALSE(reserve_port("192.0.2.1").has_value());  // TEST-NET-1
}

}  // namespace
}  // namespace drun::agent
