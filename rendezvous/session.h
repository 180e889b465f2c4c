// One connection of the rendezvous server: handshake, sealed messages, and a bounded queue of messages that the client
// has not read yet. Queued messages share their values; a session seals only the bytes that it is about to write. Does
// not interpret messages. Private to the server. Coroutines keep it alive.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/error.h"
#include "rendezvous/frame_sealer.h"
#include "rendezvous/handshake.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

// Maximum bytes queued for one client, shared or not; a client that exceeds it is disconnected.
inline constexpr std::size_t kMaxQueued = 4 * kMaxFrame;
// Bytes that are sealed at a time, and at most written before other connections get their turn.
inline constexpr std::size_t kPiece = 16u << 10;
static_assert(kPiece % FrameSealer::kUnit == 0);

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
  // Never waits: writes one piece at once, if nothing else is queued, and the rest when it is this connection's turn.
  void send(const ServerMessage& message) { send(encode_shared(message)); }
  void send(EncodedMessage message);
  // For one of many connections that get a message: writes nothing before this connection's turn.
  void send_later(const ServerMessage& message);
  // Writes all that the kernel takes now.
  void write_now();
  // Ends in an orderly way: sends queued bytes and discards incoming ones, until EOF or the deadline.
  Task<void> finish(Deadline deadline);
  void close();
  bool is_open() const { return socket_.is_open(); }

 private:
  Task<Result<std::string>> read(std::size_t n_bytes);
  Task<Result<void>> write(std::string bytes);
  bool enqueue(EncodedMessage message);  // false: closed
  void flush_later();
  bool write_some(std::size_t limit);  // false: closed
  bool seal_next();                    // false: nothing is queued
  bool has_written_all() const { return queue_.empty() && sealed_sent_ == sealed_.size(); }
  static Task<void> flush(std::shared_ptr<Session> self);

  std::uint64_t id_;
  Socket socket_;
  TaskGroup& tasks_;
  SecureStreams streams_;
  // Most of thousands of sessions have nothing to send: an empty deque would take half a kilobyte.
  std::list<EncodedMessage> queue_;
  std::size_t queued_ = 0;               // bytes in the queue that are not sealed yet
  std::unique_ptr<FrameSealer> sealer_;  // of the first message, if a piece of it is sealed
  std::size_t front_sealed_ = 0;         // bytes of the first message that are sealed
  std::string sealed_;                   // the piece that is being written
  std::size_t sealed_sent_ = 0;
  bool flushing_ = false;
  bool finishing_ = false;
};

}  // namespace drun::rendezvous
