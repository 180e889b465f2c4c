// A numbered set of sockets, common to both ends of a relay: bytes from a socket go to callbacks, bytes for it come by
// deliver(). Private to the relay. One thread.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/asio.h"
#include "rendezvous/relay.h"

namespace drun::rendezvous {

class RelayStreams {
 public:
  using Socket = asio::generic::stream_protocol::socket;
  // Uses data, close and is_full of `output`. Calls close once per connection, unless the other end closed it.
  RelayStreams(const asio::any_io_executor& executor, RelayOutput output);

  void add(std::uint32_t connection, Socket socket);
  // Ignores unknown connections: a close may have crossed the bytes on the control channel.
  void deliver(std::uint32_t connection, std::string bytes);
  // For a close by the other end: delivered bytes are still written, within a deadline.
  void close(std::uint32_t connection);
  std::size_t size() const { return streams_.size(); }
  void resume();  // is_full has become false
  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  struct Stream {
    Stream(std::uint32_t n, Socket s)
        : number(n), socket(std::move(s)), drained(socket.get_executor()), resumed(socket.get_executor()) {}
    void shut() {
      boost::system::error_code ignored;
      socket.close(ignored);
      drained.notify();
      resumed.notify();
    }
    std::uint32_t number;
    Socket socket;
    std::deque<std::string> queue;
    std::size_t front_sent = 0;
    std::size_t queued = 0;
    bool flushing = false;
    bool closed_by_other_end = false;
    Event drained;  // the queue is empty, or the socket is closed
    Event resumed;  // the output may be full no more, or the socket is closed
  };
  using StreamPtr = std::shared_ptr<Stream>;

  Task<void> read(StreamPtr stream);
  Task<void> flush(StreamPtr stream);
  Task<void> close_when_drained(StreamPtr stream);
  static void write_some(Stream& stream);

  RelayOutput output_;
  std::map<std::uint32_t, StreamPtr> streams_;
  TaskGroup tasks_;
};

}  // namespace drun::rendezvous
