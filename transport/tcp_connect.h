// Connects to a name and port: tries every address in turn, never blocks the I/O thread.
#pragma once

#include <chrono>
#include <string>

#include "base/asio.h"
#include "base/fd.h"
#include "transport/phase.h"

namespace drun::transport {

struct TcpTarget {
  TcpTarget(std::string host_name, int port_number) : host(std::move(host_name)), port(port_number) {}
  std::string host;
  int port;
  std::string family;                        // "inet", "inet6", else any
  std::string bind_address;                  // "" = the system's choice
  std::chrono::milliseconds silence{30000};  // data that is unacknowledged for longer ends the connection
};

// Names are resolved on `helper`; a resolver that hangs is abandoned at the deadline. Each address gets its share of
// the remaining time, so that a dead one does not use all of it. The socket has TCP_NODELAY, keepalive and
// TCP_USER_TIMEOUT. Errors: kUnreachable, "resolve: ..." or "connect: ...".
Task<Result<Fd>> connect_tcp(asio::thread_pool& helper, TcpTarget target, Deadline deadline,
                             const OnPhase* on_phase = nullptr);

}  // namespace drun::transport
