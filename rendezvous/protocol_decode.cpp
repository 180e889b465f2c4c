#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "rendezvous/message_type.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {
namespace {

Errc code_from_wire(std::uint8_t code) {
  if (code == 2) return Errc::kTimeout;
  if (code == 3) return Errc::kPeerFailed;
  return Errc::kProtocol;
}

template <typename Message>
Result<Message> malformed() {
  return fail(Errc::kProtocol, "a malformed message");
}

// Reads the body of one message, behind its type. Each returns false if a field exceeds its limit; a body that is too
// short or too long is noticed by the caller.

bool read_body(ByteReader& in, JoinMessage& m) {
  m.rank = in.i32();
  m.pid = in.i32();
  return true;
}

bool read_body(ByteReader& in, SetMessage& m) {
  m.request = in.u32();
  m.key = in.str();
  m.overwrite = in.boolean();
  m.value = in.str();
  return m.key.size() <= kMaxKey && m.value.size() <= kMaxValue;
}

bool read_body(ByteReader& in, GetMessage& m) {
  m.request = in.u32();
  m.key = in.str();
  m.timeout_ms = in.u32();
  return m.key.size() <= kMaxKey;
}

bool read_body(ByteReader& in, DeleteMessage& m) {
  m.request = in.u32();
  m.key = in.str();
  return m.key.size() <= kMaxKey;
}

bool read_body(ByteReader& in, BarrierMessage& m) {
  m.request = in.u32();
  m.name = in.str();
  m.timeout_ms = in.u32();
  return m.name.size() <= kMaxKey;
}

bool read_body(ByteReader& in, NcclPutMessage& m) {
  m.request = in.u32();
  m.communicator = in.str();
  m.attempt = in.i32();
  m.ok = in.boolean();
  m.id_or_reason = in.str();
  const bool fits = m.ok ? m.id_or_reason.size() == kNcclIdBytes : m.id_or_reason.size() <= kMaxText;
  return fits && m.communicator.size() <= kMaxKey;
}

bool read_body(ByteReader& in, NcclGetMessage& m) {
  m.request = in.u32();
  m.communicator = in.str();
  m.attempt = in.i32();
  m.root = in.i32();
  m.timeout_ms = in.u32();
  return m.communicator.size() <= kMaxKey;
}

bool read_body(ByteReader& in, AbortMessage& m) {
  m.why = in.str();
  return m.why.size() <= kMaxText;
}

bool read_body(ByteReader& in, ComplainMessage& m) {
  m.text = in.str();
  return m.text.size() <= kMaxText;
}

bool read_body(ByteReader& in, LeaveMessage& m) {
  m.request = in.u32();
  return true;
}

bool read_hosts(ByteReader& in, std::size_t n_ranks, Welcome& m) {
  m.host_names.resize(in.count(2));
  if (m.host_names.size() > kMaxRanks) return false;
  std::string_view previous;
  for (std::string& name : m.host_names) {
    const std::size_t n_shared = in.u8(), n_more = in.u8();
    if (n_shared > previous.size() || n_shared + n_more > kMaxHostName) return false;
    name = previous.substr(0, n_shared);
    name += in.raw(n_more);
    previous = name;
  }
  const std::size_t n_runs = in.count(8);
  for (std::size_t i = 0; i < n_runs; ++i) {
    const std::uint32_t host = in.u32(), n = in.u32();
    if (host >= m.host_names.size() || n > n_ranks - m.host_index_of_rank.size()) return false;
    m.host_index_of_rank.insert(m.host_index_of_rank.end(), n, static_cast<int>(host));
  }
  return m.host_index_of_rank.size() == n_ranks;
}

bool read_body(ByteReader& in, Welcome& m) {
  m.job_id = in.str();
  for (int* v : {&m.rank, &m.size, &m.local_rank, &m.local_size, &m.cross_rank, &m.cross_size, &m.epoch}) {
    *v = in.i32();
  }
  if (m.size < 1 || m.size > kMaxRanks || m.rank < 0 || m.rank >= m.size) return false;
  return read_hosts(in, static_cast<std::size_t>(m.size), m);
}

bool read_body(ByteReader& in, DoneReply& m) {
  m.request = in.u32();
  return true;
}

bool read_body(ByteReader& in, ValueReply& m) {
  m.request = in.u32();
  m.value = std::make_shared<const std::string>(in.str());
  return true;
}

bool read_body(ByteReader& in, DeletedReply& m) {
  m.request = in.u32();
  m.existed = in.boolean();
  return true;
}

bool read_body(ByteReader& in, ErrorReply& m) {
  m.request = in.u32();
  m.code = code_from_wire(in.u8());
  m.text = in.str();
  return true;
}

bool read_body(ByteReader& in, AbortNotice& m) {
  m.rank = in.i32();
  m.host = in.str();
  m.pid = in.i32();
  m.why = in.str();
  return true;
}

// Decodes the whole body as a `Message`, one of the alternatives of `Any`.
template <typename Message, typename Any>
Result<Any> decode_as(ByteReader& in) {
  Message message;
  const bool fits = read_body(in, message);
  if (!fits || !in.done()) return malformed<Any>();
  return Any(std::move(message));
}

}  // namespace

Result<ClientMessage> decode_client_message(std::string_view bytes) {
  ByteReader in(bytes);
  switch (static_cast<MessageType>(in.u8())) {
    case MessageType::kJoin:
      return decode_as<JoinMessage, ClientMessage>(in);
    case MessageType::kSet:
      return decode_as<SetMessage, ClientMessage>(in);
    case MessageType::kGet:
      return decode_as<GetMessage, ClientMessage>(in);
    case MessageType::kDelete:
      return decode_as<DeleteMessage, ClientMessage>(in);
    case MessageType::kBarrier:
      return decode_as<BarrierMessage, ClientMessage>(in);
    case MessageType::kNcclPut:
      return decode_as<NcclPutMessage, ClientMessage>(in);
    case MessageType::kNcclGet:
      return decode_as<NcclGetMessage, ClientMessage>(in);
    case MessageType::kAbort:
      return decode_as<AbortMessage, ClientMessage>(in);
    case MessageType::kComplain:
      return decode_as<ComplainMessage, ClientMessage>(in);
    case MessageType::kLeave:
      return decode_as<LeaveMessage, ClientMessage>(in);
    default:
      return malformed<ClientMessage>();
  }
}

Result<ServerMessage> decode_server_message(std::string_view bytes) {
  ByteReader in(bytes);
  switch (static_cast<MessageType>(in.u8())) {
    case MessageType::kWelcome:
      return decode_as<Welcome, ServerMessage>(in);
    case MessageType::kDone:
      return decode_as<DoneReply, ServerMessage>(in);
    case MessageType::kValue:
      return decode_as<ValueReply, ServerMessage>(in);
    case MessageType::kError:
      return decode_as<ErrorReply, ServerMessage>(in);
    case MessageType::kDeleted:
      return decode_as<DeletedReply, ServerMessage>(in);
    case MessageType::kAborted:
      return decode_as<AbortNotice, ServerMessage>(in);
    default:
      return malformed<ServerMessage>();
  }
}

}  // namespace drun::rendezvous
