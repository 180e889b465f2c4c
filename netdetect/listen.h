// Common parts of the listeners for probes and for link measurements: a port on all addresses of this host, and the
// connections of peers that have proven nothing yet.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <list>
#include <memory>

#include "base/error.h"

namespace drun::netdetect {

// Listens on IPv6 and IPv4, or on IPv4 alone if there is no IPv6. Returns the port, which the system chooses. `what`
// begins the error: "listen for probes".
Result<int> listen_anywhere(boost::asio::ip::tcp::acceptor& acceptor, const char* what);

// Connections of peers that have not proven that they know the token. One thread.
class UnprovenConnections {
 public:
  using Connection = std::shared_ptr<boost::asio::ip::tcp::socket>;

  // When full, closes the oldest one: a peer needs one or two round trips, so the oldest one is a stranger's.
  void add(Connection connection);
  void remove(const Connection& connection) { connections_.remove(connection); }
  void close_all();

 private:
  static constexpr std::size_t kMax = 256;
  std::list<Connection> connections_;  // oldest first
};

}  // namespace drun::netdetect
