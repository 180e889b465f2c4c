#include "netdetect/listen.h"

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <utility>

#include "base/accept.h"
#include "netdetect/proof.h"

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

Result<void> TokenListener::start(const char* what, std::function<Task<void>(Connection)> serve) {
  auto ec = listen_at(acceptor_, tcp::endpoint(tcp::v6(), 0), port_);
  if (ec) ec = listen_at(acceptor_, tcp::endpoint(tcp::v4(), 0), port_);
  if (ec) return fail(asio_error(ec, what));
  std::function<void(tcp::socket)> serve_one = [this, serve = std::move(serve)](tcp::socket socket) {
    auto connection = std::make_shared<tcp::socket>(std::move(socket));
    unproven_.add(connection);
    tasks_.spawn(serve(std::move(connection)));
  };
  tasks_.spawn(accept_all(acceptor_, std::move(serve_one)));
  return {};
}

Task<TokenListener::Hello> TokenListener::read_hello(Connection connection) {
  std::string bytes(kHelloBytes, '\0');
  const auto buffer = asio::buffer(bytes);
  const auto [ec, n] = co_await asio::async_read(*connection, buffer, as_result);
  Hello hello;
  if (ec) co_return hello;
  hello.nonce = bytes.substr(0, kNonceBytes);
  hello.reply = answer_hello(bytes, token_, port_).value_or(std::string());
  co_return hello;
}

void TokenListener::stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  unproven_.close_all();
}

}  // namespace drun::netdetect
