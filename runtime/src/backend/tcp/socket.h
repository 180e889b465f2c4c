// The few calls on TCP sockets that the backend needs. Addresses are IP text, never names.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace drun::runtime {

struct Listener {
  Fd fd;  // non-blocking
  std::string address;
  int port = 0;
};

// On a free port of this address alone.
Result<Listener> listen_on(const std::string& address, int backlog);
// Starts to connect; the socket is non-blocking and may not be connected yet.
Result<Fd> start_connect(const std::string& address, int port);
// How the connect ended.
Result<void> connect_result(int fd);
// No delay, keepalive (dead after about 30 s when idle), and sent data unacknowledged for `user_timeout` breaks the
// connection. That can't be short: to Linux a peer that is alive but does not read looks the same, and a rank may be
// late for a collective by as long as an operation may take.
void tune(int fd, std::chrono::milliseconds user_timeout);

}  // namespace drun::runtime
