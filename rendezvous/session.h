// One connection of the rendezvous server: handshake, sealed messages, and a bounded queue of what its client has yet
// to take. Knows nothing of what the messages mean. Private to the server. Coroutines keep it alive.
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

// What may wait to be sent to one client; a client that lets more gather is dropped.
inline constexpr std::size_t kMaxQueued = 4 * kMaxFrame;

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = asio::generic::stream_protocol::socket;
  // `tasks` must outlive it.
  Session(std::uint64_t id, Socket socket, TaskGroup& tasks);

  std::uint64_t id() const { return id_; }
  // Who it is in the job; -1 before it has joined and after it has left.
  int rank = -1;
  int pid = 0;
  int epoch = 0;

  Task<Result<void>> prove(JobKey key);
  // kProtocol for a frame of more than `limit` plaintext bytes or no valid message.
  Task<Result<ClientMessage>> receive(std::size_t limit);
  // Never waits: what the kernel does not take at once is queued.
  void send(const ServerMessage& message);
  // Ends in an orderly way: what is queued goes out, what still comes is thrown away, within the deadline.
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
  std::size_t front_sent_ = 0;  // bytes of the first frame that are out
  std::size_t queued_ = 0;      // bytes of all frames in the queue
  bool flushing_ = false;
  bool finishing_ = false;
};

}  // namespace drun::rendezvous
