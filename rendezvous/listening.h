// Listening TCP sockets, bound to one address and close-on-exec, and an accept loop that survives every failed accept.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <string>

#include "base/asio.h"
#include "base/error.h"

namespace drun::rendezvous {

// Listens on a free port of `address` (IP text), with a backlog for a thousand clients at once.
Result<asio::ip::tcp::acceptor> listen_on(const asio::any_io_executor& executor, const std::string& address);
// Passes each connection to `take` until the acceptor is closed. The acceptor must outlive the coroutine.
Task<void> accept_all(asio::ip::tcp::acceptor& acceptor, std::function<void(asio::ip::tcp::socket)> take);
void set_close_on_exec(int fd);

}  // namespace drun::rendezvous
