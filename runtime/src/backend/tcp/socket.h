// The calls on TCP sockets that the backend needs. Addresses are IP addresses as text, never names.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace drun::runtime {

struct Listener {
  Fd fd;  // non-blocking
  std::string address;
  int port = 0;
};

// Listens on a free port of this address alone.
Result<Listener> listen_on(const std::string& address, int backlog);
// Starts to connect; the socket is non-blocking and may not be connected yet.
Result<Fd> start_connect(const std::string& address, int port);
// Result of the connect.
Result<void> connect_result(int fd);

}  // namespace drun::runtime
