// A worker's connection to the rendezvous server: a blocking handshake, then sealed messages. Does not match replies to
// requests. Private to the client. C++17.
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
  // kClosed if the server closed the connection during the handshake: it may be busy, so a retry makes sense.
  static Result<Connection> open(const std::string& address, int port, const JobKey& key, BlockingDeadline& deadline);

  // Encodes and seals one message. send_some() must have taken all its bytes before anything else is sent.
  std::string seal(const ClientMessage& message) { return streams_.send.seal(encode(message)); }
  // Returns the number of bytes that the kernel took without waiting; may be 0.
  Result<std::size_t> send_some(std::string_view bytes);
  // The next message if it has arrived completely; does not wait. kClosed at EOF, after the last message.
  Result<std::optional<ServerMessage>> receive();
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

 private:
  Connection() = default;
  Result<std::optional<ServerMessage>> next_buffered();

  Fd fd_;
  SecureStreams streams_;
  std::string in_;  // received bytes; the first taken_ are processed
  std::size_t taken_ = 0;
};

}  // namespace drun::rendezvous
