#include "agent/reserved_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "netdetect/interface.h"

namespace drun::agent {

Result<ReservedPort> reserve_port(const std::string& text) {
  const netdetect::Address address = netdetect::parse_address(text);
  if (address.bytes.empty()) return fail(Errc::kInternal, "not an address: " + text);
  sockaddr_storage where{};
  socklen_t size = 0;
  if (address.family == 4) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&where);
    v4->sin_family = AF_INET;
    std::memcpy(&v4->sin_addr, address.bytes.data(), 4);
    size = sizeof *v4;
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&where);
    v6->sin6_family = AF_INET6;
    std::memcpy(&v6->sin6_addr, address.bytes.data(), 16);
    size = sizeof *v6;
  }
  ReservedPort reserved;
  reserved.socket.reset(::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!reserved.socket) return fail(errno_error(errno, "socket"));
  ::setsockopt(reserved.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(reserved.socket.get(), reinterpret_cast<sockaddr*>(&where), size) != 0) {
    return fail(errno_error(errno, "bind to " + text));
  }
  size = sizeof where;
  ::getsockname(reserved.socket.get(), reinterpret_cast<sockaddr*>(&where), &size);
  reserved.port = ntohs(address.family == 4 ? reinterpret_cast<sockaddr_in*>(&where)->sin_port
                                            : reinterpret_cast<sockaddr_in6*>(&where)->sin6_port);
  return reserved;
}

}  // namespace drun::agent
