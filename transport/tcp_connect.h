// Looks up a name and connects to it: tries every address in turn, never blocks the I/O thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::transport {

struct TcpTarget {
  TcpTarget(std::string host_name, int port_number) : host(std::move(host_name)), port(port_number) {}
  std::string host;
  int port;
  std::string family;                        // "inet", "inet6", else any
  std::string bind_address;                  // "" = the system's choice
  std::chrono::milliseconds silence{30000};  // data that is unacknowledged for longer ends the connection
};

using TcpEndpoints = std::vector<asio::ip::tcp::endpoint>;

// The addresses of the target's name, resolved on `helper`; a resolver that hangs is abandoned at the deadline. Errors:
// kUnreachable, "resolve: ...".
Task<Result<TcpEndpoints>> look_up(asio::thread_pool& helper, TcpTarget target, Deadline deadline);
// Connects to the first address that answers. Each gets its share of the remaining time, so that a dead one does not
// use all of it. The socket has TCP_NODELAY, keepalive and TCP_USER_TIMEOUT. Errors: kUnreachable, "connect: ...".
Task<Result<Fd>> connect_tcp(TcpTarget target, TcpEndpoints endpoints, Deadline deadline);

}  // namespace drun::transport
