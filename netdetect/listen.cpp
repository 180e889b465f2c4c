#include "netdetect/listen.h"

#include <boost/asio/ip/v6_only.hpp>
#include <utility>

#include "base/asio.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;

boost::system::error_code listen_at(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, int& port) {
  boost::system::error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) port = acceptor.local_endpoint(ec).port();
  if (ec) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }
  return ec;
}

}  // namespace

Result<int> listen_anywhere(tcp::acceptor& acceptor, const char* what) {
  int port = 0;
  auto ec = listen_at(acceptor, tcp::endpoint(tcp::v6(), 0), port);
  if (ec) ec = listen_at(acceptor, tcp::endpoint(tcp::v4(), 0), port);
  if (ec) return fail(asio_error(ec, what));
  return port;
}

void UnprovenConnections::add(Connection connection) {
  if (connections_.size() >= kMax) {
    boost::system::error_code ignored;
    connections_.front()->close(ignored);
    connections_.pop_front();
  }
  connections_.push_back(std::move(connection));
}

void UnprovenConnections::close_all() {
  boost::system::error_code ignored;
  for (const auto& connection : connections_) connection->close(ignored);
}

}  // namespace drun::netdetect
