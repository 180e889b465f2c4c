// The server of Horovod's own rendezvous, for workers that use the libhorovod of their installation: HTTP, one request
// for each connection (docs/protocol.md, "Horovod's rendezvous"). One thread, Asio coroutines.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/error.h"
#include "rendezvous/horovod_store.h"

namespace drun::rendezvous {

struct HorovodServerOptions {
  ScopeSizes scopes;
  std::string token;  // the path of each request begins with it
  // Connections at once. One more closes the oldest that has not shown the token, and is itself refused if all have.
  std::size_t max_connections = 1024;
  // A rank polls for the addresses of another one every 10 ms, each time by a new connection. The answer waits for them
  // instead, for a time that is short beside libhorovod's own timeout of 30 s.
  std::chrono::milliseconds address_timeout{1000};
};

// A random token: 32 hexadecimal digits.
std::string make_horovod_token();

// Owned by the job. stop() and join() end it and must have completed before the destructor.
class HorovodServer {
 public:
  static std::unique_ptr<HorovodServer> create(const asio::any_io_executor& executor, HorovodServerOptions options);
  virtual ~HorovodServer() = default;
  // Listens on a free port of this address only. Returns the port. Called at most once; not at all if all connections
  // are relayed.
  virtual Result<int> listen(const std::string& address) = 0;
  // Serves a connection that listen() has not accepted: the far end of a relay.
  virtual void adopt(asio::generic::stream_protocol::socket socket) = 0;
  virtual std::size_t n_connections() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

}  // namespace drun::rendezvous
