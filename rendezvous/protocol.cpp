#include "rendezvous/protocol.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"

namespace drun::rendezvous {
namespace {

enum class Type : std::uint8_t {
  kJoin = 1,
  kSet = 2,
  kGet = 3,
  kBarrier = 4,
  kNcclPut = 5,
  kNcclGet = 6,
  kAbort = 7,
  kLeave = 8,
  kWelcome = 16,
  kDone = 17,
  kValue = 18,
  kError = 19,
  kAborted = 20,
};

std::uint8_t code_on_wire(Errc code) {
  if (code == Errc::kTimeout) return 2;
  if (code == Errc::kPeerFailed) return 3;
  return 1;
}
Errc code_from_wire(std::uint8_t code) {
  if (code == 2) return Errc::kTimeout;
  if (code == 3) return Errc::kPeerFailed;
  return Errc::kProtocol;
}

std::string_view cut(const std::string& text) { return std::string_view(text).substr(0, kMaxText); }

ByteWriter start(Type type) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(type));
  return out;
}

struct Encoder {
  std::string operator()(const JoinMessage& m) const {
    auto out = start(Type::kJoin);
    out.i32(m.rank);
    out.i32(m.pid);
    return out.take();
  }
  std::string operator()(const SetMessage& m) const {
    auto out = start(Type::kSet);
    out.u32(m.request);
    out.str(m.key);
    out.boolean(m.overwrite);
    out.str(m.value);
    return out.take();
  }
  std::string operator()(const GetMessage& m) const {
    auto out = start(Type::kGet);
    out.u32(m.request);
    out.str(m.key);
    out.u32(m.timeout_ms);
    return out.take();
  }
  std::string operator()(const BarrierMessage& m) const {
    auto out = start(Type::kBarrier);
    out.u32(m.request);
    out.str(m.name);
    out.u32(m.timeout_ms);
    return out.take();
  }
  std::string operator()(const NcclPutMessage& m) const {
    auto out = start(Type::kNcclPut);
    out.u32(m.request);
    out.str(m.communicator);
    out.i32(m.attempt);
    out.boolean(m.ok);
    out.str(m.ok ? std::string_view(m.id_or_reason) : cut(m.id_or_reason));
    return out.take();
  }
  std::string operator()(const NcclGetMessage& m) const {
    auto out = start(Type::kNcclGet);
    out.u32(m.request);
    out.str(m.communicator);
    out.i32(m.attempt);
    out.i32(m.root);
    out.u32(m.timeout_ms);
    return out.take();
  }
  std::string operator()(const AbortMessage& m) const {
    auto out = start(Type::kAbort);
    out.str(cut(m.why));
    return out.take();
  }
  std::string operator()(const LeaveMessage& m) const {
    auto out = start(Type::kLeave);
    out.u32(m.request);
    return out.take();
  }
  // Host names once each, then an index per rank: a thousand ranks fit in a few KiB.
  std::string operator()(const Welcome& m) const {
    auto out = start(Type::kWelcome);
    out.str(m.job_id);
    for (const int v : {m.rank, m.size, m.local_rank, m.local_size, m.cross_rank, m.cross_size}) out.i32(v);
    std::vector<std::string> names;
    std::map<std::string, std::uint32_t> index;
    for (const auto& host : m.host_of_rank) {
      if (index.emplace(host, static_cast<std::uint32_t>(names.size())).second) names.push_back(host);
    }
    out.strs(names);
    out.u32(static_cast<std::uint32_t>(m.host_of_rank.size()));
    for (const auto& host : m.host_of_rank) out.u32(index[host]);
    return out.take();
  }
  std::string operator()(const DoneReply& m) const {
    auto out = start(Type::kDone);
    out.u32(m.request);
    return out.take();
  }
  std::string operator()(const ValueReply& m) const {
    auto out = start(Type::kValue);
    out.u32(m.request);
    out.str(m.value);
    return out.take();
  }
  std::string operator()(const ErrorReply& m) const {
    auto out = start(Type::kError);
    out.u32(m.request);
    out.u8(code_on_wire(m.code));
    out.str(cut(m.text));
    return out.take();
  }
  std::string operator()(const AbortNotice& m) const {
    auto out = start(Type::kAborted);
    out.i32(m.rank);
    out.str(cut(m.host));
    out.i32(m.pid);
    out.str(cut(m.why));
    return out.take();
  }
};

template <typename Message>
Result<Message> malformed() {
  return fail(Errc::kProtocol, "a malformed message");
}

}  // namespace

std::string encode(const ClientMessage& message) { return std::visit(Encoder(), message); }
std::string encode(const ServerMessage& message) { return std::visit(Encoder(), message); }

Result<ClientMessage> decode_client_message(std::string_view bytes) {
  ByteReader in(bytes);
  ClientMessage out;
  bool fits = true;
  const auto name = [&] {
    std::string text = in.str();
    fits = fits && text.size() <= kMaxKey;
    return text;
  };
  switch (static_cast<Type>(in.u8())) {
    case Type::kJoin: {
      JoinMessage m;
      m.rank = in.i32();
      m.pid = in.i32();
      out = m;
      break;
    }
    case Type::kSet: {
      SetMessage m;
      m.request = in.u32();
      m.key = name();
      m.overwrite = in.boolean();
      m.value = in.str();
      fits = fits && m.value.size() <= kMaxValue;
      out = std::move(m);
      break;
    }
    case Type::kGet: {
      GetMessage m;
      m.request = in.u32();
      m.key = name();
      m.timeout_ms = in.u32();
      out = std::move(m);
      break;
    }
    case Type::kBarrier: {
      BarrierMessage m;
      m.request = in.u32();
      m.name = name();
      m.timeout_ms = in.u32();
      out = std::move(m);
      break;
    }
    case Type::kNcclPut: {
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
    case Type::kNcclGet: {
      NcclGetMessage m;
      m.request = in.u32();
      m.communicator = name();
      m.attempt = in.i32();
      m.root = in.i32();
      m.timeout_ms = in.u32();
      out = std::move(m);
      break;
    }
    case Type::kAbort: {
      AbortMessage m;
      m.why = in.str();
      fits = m.why.size() <= kMaxText;
      out = std::move(m);
      break;
    }
    case Type::kLeave:
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
  switch (static_cast<Type>(in.u8())) {
    case Type::kWelcome: {
      Welcome m;
      m.job_id = in.str();
      for (int* v : {&m.rank, &m.size, &m.local_rank, &m.local_size, &m.cross_rank, &m.cross_size}) *v = in.i32();
      const std::vector<std::string> names = in.strs();
      const std::size_t n_ranks = in.count(4);
      m.host_of_rank.reserve(n_ranks);
      for (std::size_t i = 0; i < n_ranks && fits; ++i) {
        const std::uint32_t index = in.u32();
        fits = index < names.size();
        if (fits) m.host_of_rank.push_back(names[index]);
      }
      fits = fits && m.size >= 1 && m.host_of_rank.size() == static_cast<std::size_t>(m.size) && m.rank >= 0 &&
             m.rank < m.size;
      out = std::move(m);
      break;
    }
    case Type::kDone:
      out = DoneReply{in.u32()};
      break;
    case Type::kValue: {
      ValueReply m;
      m.request = in.u32();
      m.value = in.str();
      out = std::move(m);
      break;
    }
    case Type::kError: {
      ErrorReply m;
      m.request = in.u32();
      m.code = code_from_wire(in.u8());
      m.text = in.str();
      out = std::move(m);
      break;
    }
    case Type::kAborted: {
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

std::uint32_t request_of(const ClientMessage& message) {
  struct Visitor {
    std::uint32_t operator()(const JoinMessage&) const { return 0; }
    std::uint32_t operator()(const AbortMessage&) const { return 0; }
    std::uint32_t operator()(const SetMessage& m) const { return m.request; }
    std::uint32_t operator()(const GetMessage& m) const { return m.request; }
    std::uint32_t operator()(const BarrierMessage& m) const { return m.request; }
    std::uint32_t operator()(const NcclPutMessage& m) const { return m.request; }
    std::uint32_t operator()(const NcclGetMessage& m) const { return m.request; }
    std::uint32_t operator()(const LeaveMessage& m) const { return m.request; }
  };
  return std::visit(Visitor(), message);
}

std::string culprit(const AbortNotice& notice) {
  std::string out = notice.rank >= 0 ? "rank " + std::to_string(notice.rank) : "drun";
  if (!notice.host.empty()) out += " on " + notice.host;
  if (notice.pid > 0) out += " (pid " + std::to_string(notice.pid) + ")";
  return out;
}

}  // namespace drun::rendezvous
