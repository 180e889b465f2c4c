// Requests and replies on a worker's connection; ABORT may arrive at any time. Private to the client. C++17.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "rendezvous/connection.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

class RequestChannel {
 public:
  explicit RequestChannel(Connection connection) : connection_(std::move(connection)) {}

  std::uint32_t new_request();
  // `message` carries `request`. The server enforces `timeout`; the client's own deadline is slightly later. kCanceled
  // as soon as `cancel_fd`, unless it is -1, can be read.
  Result<ServerMessage> call(const ClientMessage& message, std::uint32_t request, std::chrono::milliseconds timeout,
                             int cancel_fd = -1);
  Result<void> send(const ClientMessage& message, BlockingDeadline& deadline);
  // Waits for the reply to `request`; 0: the welcome.
  Result<ServerMessage> await(std::uint32_t request, BlockingDeadline& deadline, int cancel_fd = -1);
  // Receives everything that has arrived, without waiting. Keeps pushes and the awaited reply; drops late replies.
  void absorb();
  // An error if no call can proceed.
  Result<void> check() const;

  // From here on ABORT is not an error, so that LEAVE can still be sent.
  void begin_to_leave() { leaving_ = true; }
  void close();
  // Sends LEAVE for a client that is being destroyed: best effort, without waiting.
  void leave_in_passing();

  int fd() const { return connection_.fd(); }
  bool closed() const { return closed_; }
  const std::optional<AbortNotice>& notice() const { return notice_; }
  // The reason why the connection is unusable; nothing while it works.
  const std::optional<Error>& lost() const { return lost_; }
  // True if the connection ended without a message from the server, which may have been too busy to keep it.
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
  bool said_why_ = false;     // lost_ is an error that the server sent
  bool partly_sent_ = false;  // a frame is incomplete: nothing more may be sent
  bool leaving_ = false;
  bool closed_ = false;
};

}  // namespace drun::rendezvous
