#include "rendezvous/blocking.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/stall_watch.h"
#include "base/tcp_socket.h"
#include "base/text.h"

namespace drun::rendezvous {

Result<short> wait_for(int fd, short events, BlockingDeadline& deadline, int cancel_fd) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongest = std::chrono::seconds(1);
  StallWatch stops(kLongest);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    const auto slice = std::clamp(left, std::chrono::milliseconds(0), kLongest);
    std::array<pollfd, 2> polled{{{fd, events, 0}, {cancel_fd, POLLIN, 0}}};
    const int n = ::poll(polled.data(), polled.size(), static_cast<int>(slice.count()));
    if (n < 0 && errno != EINTR) return fail(errno_error(errno, "poll"));
    deadline += stops.poll();
    if (n > 0 && polled[0].revents == 0) return fail(Errc::kCanceled, "canceled");
    if (n > 0) return polled[0].revents;
    if (n == 0 && steady_clock::now() >= deadline) return fail(Errc::kTimeout, "timed out");
  }
}

Result<void> send_all(int fd, std::string_view bytes, BlockingDeadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail(errno_error(errno, "send"));
    if (auto ready = wait_for(fd, POLLOUT, deadline); !ready) return fail(ready.error());
  }
  return {};
}

Result<std::string> receive_exactly(int fd, std::size_t n_bytes, BlockingDeadline& deadline) {
  std::string out(n_bytes, '\0');
  std::size_t have = 0;
  while (have < n_bytes) {
    const ssize_t n = ::recv(fd, &out[have], n_bytes - have, 0);
    if (n > 0) {
      have += static_cast<std::size_t>(n);
      continue;
    }
    if (n == 0 || errno == ECONNRESET) return fail(Errc::kClosed, "closed by the other side");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail(errno_error(errno, "receive"));
    if (auto ready = wait_for(fd, POLLIN, deadline); !ready) return fail(ready.error());
  }
  return out;
}

Result<Fd> connect_tcp(const std::string& address, int port, BlockingDeadline& deadline) {
  const std::string where = host_port(address, port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (port <= 0 || port > 65535 || ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail(Errc::kProtocol, where, "not an IP address and a port");
  }
  Fd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int rc = fd ? ::connect(fd.get(), found->ai_addr, found->ai_addrlen) : -1;
  const int err = errno;
  ::freeaddrinfo(found);
  if (!fd) return fail(errno_error(err, "socket"));
  if (rc != 0) {
    // Even after EINTR the connection attempt continues in the background.
    if (err != EINPROGRESS && err != EINTR) return fail(errno_error(err, "connect").with_subject(where));
    if (auto ready = wait_for(fd.get(), POLLOUT, deadline); !ready) {
      if (ready.error().code != Errc::kTimeout) return fail(ready.error());
      return fail(Errc::kTimeout, where, "no answer to the connection attempt");
    }
    int outcome = 0;
    socklen_t size = sizeof outcome;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &outcome, &size);
    if (outcome != 0) return fail(errno_error(outcome, "connect").with_subject(where));
  }
  tune_tcp(fd.get());
  return fd;
}

void tune_tcp(int fd) {
  // Heartbeats find a machine that is gone, within --heartbeat-timeout, which may be long.
  drun::tune_tcp(fd, std::chrono::hours(1), std::chrono::seconds(20));
}

}  // namespace drun::rendezvous
