// The messages inside sealed frames between a worker (client) and drun (server), and their limits. One type byte, then
// fields by ByteWriter. C++17. Every byte: docs/protocol.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "rendezvous/handshake.h"

namespace drun::rendezvous {

inline constexpr std::size_t kMaxKey = 1024;                // bytes of a key, a barrier's or a communicator's name
inline constexpr std::size_t kMaxValue = kMaxFrame - 4096;  // bytes of a value: a frame holds it and its key
inline constexpr std::size_t kMaxText = 4096;               // bytes of a reason; the rest is cut
inline constexpr std::size_t kMaxHostName = 255;            // bytes of a host's name
inline constexpr std::size_t kNcclIdBytes = 128;
inline constexpr int kMaxRanks = 1 << 20;

// Bytes that several messages share.
using SharedBytes = std::shared_ptr<const std::string>;

// The part of WELCOME that differs from rank to rank.
struct WelcomePlace {
  std::string job_id;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  int epoch = 1;  // of this rank's program, from 1: roster.h
};
// The server's reply to JOIN.
struct Welcome : WelcomePlace {
  std::vector<std::string> host_names;  // by host, for messages; two hosts may have the same name
  std::vector<int> host_index_of_rank;
  // "" for a rank that the job does not have.
  std::string host_of(int of_rank) const;
};

struct AbortNotice {
  int rank = -1;  // -1: not caused by a worker
  std::string host;
  int pid = 0;
  std::string why;
};

// Client to server. `request` is chosen by the client, not 0, and repeated in the reply. `timeout_ms` counts from the
// arrival at the server.
struct JoinMessage {
  int rank = -1;
  int pid = 0;
};
struct SetMessage {
  std::uint32_t request = 0;
  std::string key, value;
  bool overwrite = false;
};
struct GetMessage {
  std::uint32_t request = 0;
  std::string key;
  std::uint32_t timeout_ms = 0;
};
struct DeleteMessage {
  std::uint32_t request = 0;
  std::string key;
};
struct BarrierMessage {
  std::uint32_t request = 0;
  std::string name;
  std::uint32_t timeout_ms = 0;
};
// The root's NCCL id, or the reason why it has none.
struct NcclPutMessage {
  std::uint32_t request = 0;
  std::string communicator;
  int attempt = 0;
  bool ok = true;
  std::string id_or_reason;
};
struct NcclGetMessage {
  std::uint32_t request = 0;
  std::string communicator;
  int attempt = 0;
  int root = 0;
  std::uint32_t timeout_ms = 0;
};
struct AbortMessage {
  std::string why;
};
struct LeaveMessage {
  std::uint32_t request = 0;
};
// Another rank made the sender fail. No reply.
struct ComplainMessage {
  std::string text;
};
using ClientMessage = std::variant<JoinMessage, SetMessage, GetMessage, BarrierMessage, NcclPutMessage, NcclGetMessage,
                                   AbortMessage, LeaveMessage, ComplainMessage, DeleteMessage>;

// Server to client.
struct DoneReply {
  std::uint32_t request = 0;
};
struct ValueReply {
  std::uint32_t request = 0;
  SharedBytes value;  // not nullptr
};
// Request 0: an error of the whole connection, which is then closed.
struct ErrorReply {
  std::uint32_t request = 0;
  Errc code = Errc::kProtocol;  // kProtocol, kTimeout or kPeerFailed
  std::string text;
};
struct DeletedReply {
  std::uint32_t request = 0;
  bool existed = false;
};
using ServerMessage = std::variant<Welcome, DoneReply, ValueReply, ErrorReply, AbortNotice, DeletedReply>;

std::string encode(const ClientMessage& message);
std::string encode(const ServerMessage& message);

// An encoded message: bytes of its own, then bytes that it shares with other messages.
struct EncodedMessage {
  std::string head;
  SharedBytes tail;  // nullptr: none
  std::size_t size() const { return head.size() + (tail ? tail->size() : 0); }
  // A copy of `n_bytes` bytes from `from`.
  std::string piece(std::size_t from, std::size_t n_bytes) const;
};
// As encode(), but without a copy of a value.
EncodedMessage encode_shared(const ServerMessage& message);
// The hosts in WELCOME, which are the same for all ranks of a job. `host_names`: by host, cut at 255 bytes.
std::string encode_hosts(const std::vector<std::string>& host_names, const std::vector<int>& host_index_of_rank);
EncodedMessage encode_welcome(const WelcomePlace& place, SharedBytes hosts);

// kProtocol for an unknown type, missing or surplus bytes, or a field beyond its limit.
Result<ClientMessage> decode_client_message(std::string_view bytes);
Result<ServerMessage> decode_server_message(std::string_view bytes);

// The request that a message carries; 0 if none.
std::uint32_t request_of(const ClientMessage& message);

// "rank 3 on node7 (pid 812)", "drun on node7" or "drun": the subject of the error for an abort.
std::string attribution(const AbortNotice& notice);

}  // namespace drun::rendezvous
