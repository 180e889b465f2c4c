// One connection of the rendezvous server: handshake, sealed messages, and a bounded queue of messages that the client
// has not read yet. Does not interpret messages. Private to the server. Coroutines keep it alive.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/error.h"
#include "rendezvous/handshake.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

// Maximum bytes queued for one client; a client that exceeds it is disconnected.
inline constexpr std::size_t kMaxQueued = 4 * kMaxFrame;

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = asio::generic::stream_protocol::socket;
  // `tasks` must outlive it.
  Session(std::uint64_t id, Socket socket, TaskGroup& tasks);

  std::uint64_t id() const { return id_; }
  // The rank that joined on this connection; -1 before it joins and after it leaves.
  int rank = -1;
  int pid = 0;
  int epoch = 0;

  Task<Result<void>> prove(JobKey key);
  // kProtocol for a frame of more than `limit` plaintext bytes or an invalid message.
  Task<Result<ClientMessage>> receive(std::size_t limit);
  // Never waits: queues bytes that the kernel does not take at once.
  void send(const ServerMessage& message) { send(EncodedMessage{encode(message), nullptr}); }
  void send(const EncodedMessage& message);
  // Ends in an orderly way: sends queued bytes and discards incoming ones, until EOF or the deadline.
  Task<void> finish(Deadline deadline);
  void close();
  bool is_open() const { return socket_.is_open(); }

 private:
  Task<Result<std::string>> read(std::size_t n_bytes);
  Task<Result<void>> write(std::string bytes);
  bool write_some();  // false: closed
  static Task<void> flush(std::shared_ptr<Session> self);

  std::uint64_t id_;
  Socket socket_;
  TaskGroup& tasks_;
  SecureStreams streams_;
  std::deque<std::string> queue_;
  std::size_t front_sent_ = 0;  // bytes of the first frame that are sent
  std::size_t queued_ = 0;      // bytes of all frames in the queue
  bool flushing_ = false;
  bool finishing_ = false;
};

}  // namespace drun::rendezvous
