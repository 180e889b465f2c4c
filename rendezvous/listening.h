// Listening TCP sockets, bound to one address and close-on-exec.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "base/asio.h"
#include "base/error.h"

namespace drun::rendezvous {

// Listens on a free port of `address` (IP text), with a backlog for a thousand clients at once.
Result<asio::ip::tcp::acceptor> listen_on(const asio::any_io_executor& executor, const std::string& address);

}  // namespace drun::rendezvous
