// The accept loop of a listening TCP socket.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "base/asio.h"

namespace drun {

// Passes each connection to `take` until the acceptor is closed. Survives every failed accept. The acceptor must
// outlive the coroutine.
Task<void> accept_all(asio::ip::tcp::acceptor& acceptor, std::function<void(asio::ip::tcp::socket)> take);
void set_close_on_exec(int fd);

}  // namespace drun
