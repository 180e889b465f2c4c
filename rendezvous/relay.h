// Both ends of a relayed rendezvous: the agent listens on loopback, and its connections travel as numbered byte streams
// over the control channel to drun. The relay does not decrypt the bytes it forwards. One thread.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/asio.h"
#include "base/error.h"

namespace drun::rendezvous {

// An agent may listen twice: for drun's rendezvous, and for Horovod's (horovod_server.h). The connections of the second
// listener have numbers from here on.
inline constexpr std::uint32_t kFirstHorovodRelay = 1u << 31;

struct RelayOutput {
  std::function<void(std::uint32_t connection)> open;
  std::function<void(std::uint32_t connection, std::string bytes)> data;  // at most 64 KiB at a time
  std::function<void(std::uint32_t connection)> close;
  // True if more than enough waits to be carried: then no more is read from the sockets until resume(). May be empty.
  std::function<bool()> is_full;
};

// Maximum bytes per connection that wait to be written to the socket: two frames of maximum size. A connection that
// exceeds it is closed. There is no flow control from end to end; towards the workers, RelayOutput::is_full limits what
// the carrier buffers. A worker sends at most one request before it waits.
inline constexpr std::size_t kMaxRelayQueue = 8u << 20;

// Listens on 127.0.0.1 (::1 without IPv4). Calls output.close() for each connection that ends on this side, but not for
// one that close() was called for.
class RelayListener {
 public:
  // `first`: the number of its first connection.
  static Result<std::unique_ptr<RelayListener>> start(const asio::any_io_executor& executor, RelayOutput output,
                                                      std::uint32_t first = 1);
  virtual ~RelayListener() = default;
  virtual std::string address() const = 0;  // "127.0.0.1"
  virtual int port() const = 0;
  virtual void deliver(std::uint32_t connection, std::string bytes) = 0;
  virtual void close(std::uint32_t connection) = 0;  // after the delivered bytes are written
  virtual void stop() = 0;                           // without calling RelayOutput::close
  virtual Task<void> join() = 0;
};

// drun's side: turns the numbered streams of one agent back into sockets for Server::adopt or HorovodServer::adopt.
class RelaySink {
 public:
  // Gets the server's end of a socket pair per connection.
  using Adopt = std::function<void(std::uint32_t connection, asio::generic::stream_protocol::socket)>;
  static std::unique_ptr<RelaySink> create(const asio::any_io_executor& executor, Adopt adopt,
                                           RelayOutput to_agent);  // `open` is unused
  virtual ~RelaySink() = default;
  virtual void open(std::uint32_t connection) = 0;
  virtual void deliver(std::uint32_t connection, std::string bytes) = 0;
  virtual void close(std::uint32_t connection) = 0;  // after the delivered bytes are written
  virtual void resume() = 0;                         // RelayOutput::is_full has become false
  virtual void stop() = 0;                           // without calling RelayOutput::close
  virtual Task<void> join() = 0;
};

}  // namespace drun::rendezvous
