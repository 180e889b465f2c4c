// A worker's connection to the rendezvous server: the handshake in a blocking way, then sealed messages. Knows nothing
// of requests and replies. Private to the client. C++17.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "rendezvous/blocking.h"
#include "rendezvous/handshake.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

class Connection {
 public:
  // kClosed if the server went away during the handshake: it may have been busy, and a new attempt makes sense.
  static Result<Connection> open(const std::string& address, int port, const JobKey& key, BlockingDeadline deadline);

  // One message of bytes to be sent; nothing may be sent in between until send_some() has taken all of them.
  std::string seal(const ClientMessage& message) { return streams_.send.seal(encode(message)); }
  // How much the kernel took without waiting: maybe 0.
  Result<std::size_t> send_some(std::string_view bytes);
  // The next message if it is complete, without waiting. kClosed at the end of the stream, after the last message.
  Result<std::optional<ServerMessage>> receive();
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

 private:
  Connection() = default;
  Result<std::optional<ServerMessage>> next_buffered();

  Fd fd_;
  SecureStreams streams_;
  std::string in_;  // what has arrived; the first taken_ bytes are done with
  std::size_t taken_ = 0;
};

}  // namespace drun::rendezvous
