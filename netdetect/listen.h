// Listening on all addresses of this host.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "base/error.h"

namespace drun::netdetect {

// On a port that the system chooses, which is the result: IPv6 and IPv4, or IPv4 alone where there is no other. `what`
// it is for begins the error: "listen for probes".
Result<int> listen_anywhere(boost::asio::ip::tcp::acceptor& acceptor, const char* what);

}  // namespace drun::netdetect
