// The common part of the listeners for probes and for link measurements: a port on all addresses of this host, and
// peers that must prove that they know the token.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "base/asio.h"
#include "base/error.h"

namespace drun::netdetect {

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

// Must not be destroyed before stop() and join(). One thread.
class TokenListener {
 public:
  using Connection = UnprovenConnections::Connection;

  TokenListener(const asio::any_io_executor& executor, std::string token)
      : executor_(executor), acceptor_(executor), tasks_(executor), token_(std::move(token)) {}

  // Listens on IPv6 and IPv4, or on IPv4 alone if there is no IPv6, on a port that the system chooses. Runs `serve` for
  // each connection, which counts as unproven until proven(). `what` begins the error: "listen for probes".
  Result<void> start(const char* what, std::function<Task<void>(Connection)> serve);
  int port() const { return port_; }
  const std::string& token() const { return token_; }

  // The first bytes of a connection. `reply`, for the peer, proves that this side knows the token, too; it is empty if
  // the peer has not proven it.
  struct Hello {
    std::string nonce, reply;
  };
  Task<Hello> read_hello(Connection connection);
  void proven(const Connection& connection) { unproven_.remove(connection); }

  void stop();  // closes the connections that are unproven
  Task<void> join() { return tasks_.join(); }

 private:
  asio::any_io_executor executor_;
  asio::ip::tcp::acceptor acceptor_;
  TaskGroup tasks_;
  std::string token_;
  UnprovenConnections unproven_;
  int port_ = 0;
};

}  // namespace drun::netdetect
