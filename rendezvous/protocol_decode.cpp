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

}  // namespace

Result<ClientMessage> decode_client_message(std::string_view bytes) {
  ByteReader in(bytes);
  ClientMessage out;
  bool fits = true;
  const auto name = [&] {
    std::string text = in.str();
    fits = fits && text.size() <= kMaxKey;
    return text;
  };
  switch (static_cast<MessageType>(in.u8())) {
    case MessageType::kJoin: {
      JoinMessage m;
      m.rank = in.i32();
      m.pid = in.i32();
      out = m;
      break;
    }
    case MessageType::kSet: {
      SetMessage m;
      m.request = in.u32();
      m.key = name();
      m.overwrite = in.boolean();
      m.value = in.str();
      fits = fits && m.value.size() <= kMaxValue;
      out = std::move(m);
      break;
    }
    case MessageType::kGet: {
      GetMessage m;
      m.request = in.u32();
      m.key = name();
      m.timeout_ms = in.u32();
      out = std::move(m);
      break;
    }
    case MessageType::kBarrier: {
      BarrierMessage m;
      m.request = in.u32();
      m.name = name();
      m.timeout_ms = in.u32();
      out = std::move(m);
      break;
    }
    case MessageType::kNcclPut: {
      NcclPutMessage m;
      m.request = in.u32();
      m.communicator = name();
      m.attempt = in.i32();
      m.ok = in.boolean();
      m.id_or_reason = in.str();
      fits = fits && (m.ok ? m.id_or_reason.size() == kNcclIdBytes : m.id_or_reason.size() <= kMaxText);
      out = std::move(m);
      break;
    }
    case MessageType::kNcclGet: {
      NcclGetMessage m;
      m.request = in.u32();
      m.communicator = name();
      m.attempt = in.i32();
      m.root = in.i32();
      m.timeout_ms = in.u32();
      out = std::move(m);
      break;
    }
    case MessageType::kAbort: {
      AbortMessage m;
      m.why = in.str();
      fits = m.why.size() <= kMaxText;
      out = std::move(m);
      break;
    }
    case MessageType::kComplain: {
      ComplainMessage m;
      m.text = in.str();
      fits = m.text.size() <= kMaxText;
      out = std::move(m);
      break;
    }
    case MessageType::kLeave:
      out = LeaveMessage{in.u32()};
      break;
    default:
      return malformed<ClientMessage>();
  }
  if (!in.done() || !fits) return malformed<ClientMessage>();
  return out;
}

Result<ServerMessage> decode_server_message(std::string_view bytes) {
  ByteReader in(bytes);
  ServerMessage out;
  bool fits = true;
  switch (static_cast<MessageType>(in.u8())) {
    case MessageType::kWelcome: {
      Welcome m;
      m.job_id = in.str();
      for (int* v : {&m.rank, &m.size, &m.local_rank, &m.local_size, &m.cross_rank, &m.cross_size, &m.epoch}) {
        *v = in.i32();
      }
      const std::vector<std::string> names = in.strs();
      const std::size_t n_ranks = in.count(4);
      m.host_of_rank.reserve(n_ranks);
      for (std::size_t i = 0; i < n_ranks && fits; ++i) {
        const std::uint32_t index = in.u32();
        fits = index < names.size();
        if (!fits) break;
        m.host_of_rank.push_back(names[index]);
        m.host_index_of_rank.push_back(static_cast<int>(index));
      }
      fits = fits && m.size >= 1 && m.host_of_rank.size() == static_cast<std::size_t>(m.size) && m.rank >= 0 &&
             m.rank < m.size;
      out = std::move(m);
      break;
    }
    case MessageType::kDone:
      out = DoneReply{in.u32()};
      break;
    case MessageType::kValue: {
      ValueReply m;
      m.request = in.u32();
      m.value = in.str();
      out = std::move(m);
      break;
    }
    case MessageType::kError: {
      ErrorReply m;
      m.request = in.u32();
      m.code = code_from_wire(in.u8());
      m.text = in.str();
      out = std::move(m);
      break;
    }
    case MessageType::kAborted: {
      AbortNotice m;
      m.rank = in.i32();
      m.host = in.str();
      m.pid = in.i32();
      m.why = in.str();
      out = std::move(m);
      break;
    }
    default:
      return malformed<ServerMessage>();
  }
  if (!in.done() || !fits) return malformed<ServerMessage>();
  return out;
}

}  // namespace drun::rendezvous
