#include "runtime/src/backend/tcp/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace drun::runtime {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t n_bytes = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Address> parse(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail(Errc::kUsage, host_port(address, port), "not an IP address and port");
  }
  Address result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.n_bytes = found->ai_addrlen;
  ::freeaddrinfo(found);
  return result;
}

Result<Fd> make_socket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(errno_error(errno, "socket"));
  return fd;
}

}  // namespace

Result<Listener> listen_on(const std::string& address, int backlog) {
  auto where = parse(address, 0);
  if (!where) return fail(where.error());
  auto fd = make_socket(where->family());
  if (!fd) return fail(fd.error());
  if (::bind(fd->get(), where->get(), where->n_bytes) != 0) {
    // No interface here has this address: we are in another network namespace than the agent, which chose it.
    const char* hint = errno == EADDRNOTAVAIL ? " (hint: no peer can reach a container with a network of its own: give "
                                                "it the host's, docker run --network host)"
                                              : "";
    return fail(errno_error(errno, "can't listen on this host's data address " + address + hint));
  }
  if (::listen(fd->get(), backlog) != 0) return fail(errno_error(errno, "listen on " + address));
  sockaddr_storage bound{};
  socklen_t n_bytes = sizeof bound;
  if (::getsockname(fd->get(), reinterpret_cast<sockaddr*>(&bound), &n_bytes) != 0) {
    return fail(errno_error(errno, "getsockname"));
  }
  Listener result;
  result.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                                  : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  result.fd = std::move(*fd);
  result.address = address;
  return result;
}

Result<Fd> start_connect(const std::string& address, int port) {
  auto where = parse(address, port);
  if (!where) return fail(where.error());
  auto fd = make_socket(where->family());
  if (!fd) return fail(fd.error());
  if (::connect(fd->get(), where->get(), where->n_bytes) != 0 && errno != EINPROGRESS && errno != EINTR) {
    return fail(errno_error(errno, "connect to " + host_port(address, port)));
  }
  return std::move(*fd);
}

Result<void> connect_result(int fd) {
  int error = 0;
  socklen_t n_bytes = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n_bytes) != 0) error = errno;
  if (error != 0) return fail(errno_error(error, "connect"));
  return {};
}

}  // namespace drun::runtime
