// Requests and replies on a worker's connection, with ABORT breaking in at any time. Private to the client. C++17.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "rendezvous/connection.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

class Exchange {
 public:
  explicit Exchange(Connection connection) : connection_(std::move(connection)) {}

  std::uint32_t new_request();
  // `message` carries `request`. The server keeps `timeout`; we give up a little later.
  Result<ServerMessage> call(const ClientMessage& message, std::uint32_t request, std::chrono::milliseconds timeout);
  Result<void> send(const ClientMessage& message, BlockingDeadline deadline);
  // The reply to `request`; 0: the welcome.
  Result<ServerMessage> await(std::uint32_t request, BlockingDeadline deadline);
  // Everything that has arrived, without waiting: a push is kept, a reply that somebody waits for is kept, a late one
  // is dropped.
  void absorb();
  // Why no call can go on, if so.
  Result<void> check() const;

  // From here on an ABORT is no error: the goodbye may still be said.
  void begin_to_leave() { leaving_ = true; }
  void close();
  // The goodbye of a client that is destroyed: best effort, without waiting.
  void leave_in_passing();

  int fd() const { return connection_.fd(); }
  bool closed() const { return closed_; }
  const std::optional<AbortNotice>& notice() const { return notice_; }
  // The connection is of no use any more, and why.
  const std::optional<Error>& lost() const { return lost_; }
  // It ended without a word from the server, which may have been too busy to keep it.
  bool ended_without_reason() const { return lost_ && !notice_ && !said_why_; }

 private:
  bool usable() const { return !closed_ && !lost_; }
  void take(ServerMessage message);

  Connection connection_;
  std::uint32_t last_request_ = 0;
  std::optional<std::uint32_t> awaited_;
  std::optional<ServerMessage> reply_;
  std::optional<AbortNotice> notice_;
  std::optional<Error> lost_;
  bool said_why_ = false;     // lost_ is the server's own word
  bool partly_sent_ = false;  // a frame is cut off: nothing more may be sent
  bool leaving_ = false;
  bool closed_ = false;
};

}  // namespace drun::rendezvous
