// Listens on all addresses of this host.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "base/error.h"

namespace drun::netdetect {

// Listens on IPv6 and IPv4, or on IPv4 alone if there is no IPv6. Returns the port, which the system chooses. `what`
// begins the error: "listen for probes".
Result<int> listen_anywhere(boost::asio::ip::tcp::acceptor& acceptor, const char* what);

}  // namespace drun::netdetect
