#include <algorithm>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "rendezvous/message_type.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {
namespace {

std::uint8_t code_on_wire(Errc code) {
  if (code == Errc::kTimeout) return 2;
  if (code == Errc::kPeerFailed) return 3;
  return 1;
}

std::string_view cut(const std::string& text) { return std::string_view(text).substr(0, kMaxText); }

ByteWriter start(MessageType type) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(type));
  return out;
}

// A run of consecutive ranks on the same host.
struct Run {
  int host = 0;
  std::uint32_t n_ranks = 0;
};

std::vector<Run> runs_of(const std::vector<int>& host_index_of_rank) {
  std::vector<Run> out;
  for (const int host : host_index_of_rank) {
    if (out.empty() || out.back().host != host) out.push_back({host, 0});
    ++out.back().n_ranks;
  }
  return out;
}

std::string encode_place(const WelcomePlace& m) {
  auto out = start(MessageType::kWelcome);
  out.str(m.job_id);
  for (const int v : {m.rank, m.size, m.local_rank, m.local_size, m.cross_rank, m.cross_size, m.epoch}) out.i32(v);
  return out.take();
}

std::string encode_value_head(const ValueReply& m) {
  auto out = start(MessageType::kValue);
  out.u32(m.request);
  out.u32(static_cast<std::uint32_t>(m.value->size()));
  return out.take();
}

struct Encoder {
  std::string operator()(const JoinMessage& m) const {
    auto out = start(MessageType::kJoin);
    out.i32(m.rank);
    out.i32(m.pid);
    return out.take();
  }
  std::string operator()(const SetMessage& m) const {
    auto out = start(MessageType::kSet);
    out.u32(m.request);
    out.str(m.key);
    out.boolean(m.overwrite);
    out.str(m.value);
    return out.take();
  }
  std::string operator()(const GetMessage& m) const {
    auto out = start(MessageType::kGet);
    out.u32(m.request);
    out.str(m.key);
    out.u32(m.timeout_ms);
    return out.take();
  }
  std::string operator()(const DeleteMessage& m) const {
    auto out = start(MessageType::kDelete);
    out.u32(m.request);
    out.str(m.key);
    return out.take();
  }
  std::string operator()(const BarrierMessage& m) const {
    auto out = start(MessageType::kBarrier);
    out.u32(m.request);
    out.str(m.name);
    out.u32(m.timeout_ms);
    return out.take();
  }
  std::string operator()(const NcclPutMessage& m) const {
    auto out = start(MessageType::kNcclPut);
    out.u32(m.request);
    out.str(m.communicator);
    out.i32(m.attempt);
    out.boolean(m.ok);
    out.str(m.ok ? std::string_view(m.id_or_reason) : cut(m.id_or_reason));
    return out.take();
  }
  std::string operator()(const NcclGetMessage& m) const {
    auto out = start(MessageType::kNcclGet);
    out.u32(m.request);
    out.str(m.communicator);
    out.i32(m.attempt);
    out.i32(m.root);
    out.u32(m.timeout_ms);
    return out.take();
  }
  std::string operator()(const AbortMessage& m) const {
    auto out = start(MessageType::kAbort);
    out.str(cut(m.why));
    return out.take();
  }
  std::string operator()(const ComplainMessage& m) const {
    auto out = start(MessageType::kComplain);
    out.str(cut(m.text));
    return out.take();
  }
  std::string operator()(const LeaveMessage& m) const {
    auto out = start(MessageType::kLeave);
    out.u32(m.request);
    return out.take();
  }
  std::string operator()(const Welcome& m) const {
    return encode_place(m) + encode_hosts(m.host_names, m.host_index_of_rank);
  }
  std::string operator()(const DoneReply& m) const {
    auto out = start(MessageType::kDone);
    out.u32(m.request);
    return out.take();
  }
  std::string operator()(const ValueReply& m) const { return encode_value_head(m) + *m.value; }
  std::string operator()(const DeletedReply& m) const {
    auto out = start(MessageType::kDeleted);
    out.u32(m.request);
    out.boolean(m.existed);
    return out.take();
  }
  std::string operator()(const ErrorReply& m) const {
    auto out = start(MessageType::kError);
    out.u32(m.request);
    out.u8(code_on_wire(m.code));
    out.str(cut(m.text));
    return out.take();
  }
  std::string operator()(const AbortNotice& m) const {
    auto out = start(MessageType::kAborted);
    out.i32(m.rank);
    out.str(cut(m.host));
    out.i32(m.pid);
    out.str(cut(m.why));
    return out.take();
  }
};

}  // namespace

std::string encode(const ClientMessage& message) { return std::visit(Encoder(), message); }
std::string encode(const ServerMessage& message) { return std::visit(Encoder(), message); }

std::string EncodedMessage::piece(std::size_t from, std::size_t n_bytes) const {
  std::string out;
  out.reserve(n_bytes);
  if (from < head.size()) out = head.substr(from, n_bytes);
  if (out.size() < n_bytes) out.append(*tail, from + out.size() - head.size(), n_bytes - out.size());
  return out;
}

EncodedMessage encode_shared(const ServerMessage& message) {
  if (const auto* value = std::get_if<ValueReply>(&message)) return {encode_value_head(*value), value->value};
  return {encode(message), nullptr};
}

// Neighbors in a list of hosts have similar names, and ranks are placed host by host.
std::string encode_hosts(const std::vector<std::string>& host_names, const std::vector<int>& host_index_of_rank) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(host_names.size()));
  std::string_view previous;
  for (const std::string& whole : host_names) {
    const std::string_view name = std::string_view(whole).substr(0, kMaxHostName);
    const auto [end, ignored] = std::mismatch(name.begin(), name.end(), previous.begin(), previous.end());
    const auto n_shared = static_cast<std::size_t>(end - name.begin());
    out.u8(static_cast<std::uint8_t>(n_shared));
    out.u8(static_cast<std::uint8_t>(name.size() - n_shared));
    out.raw(name.substr(n_shared));
    previous = name;
  }
  const auto runs = runs_of(host_index_of_rank);
  out.u32(static_cast<std::uint32_t>(runs.size()));
  for (const Run& run : runs) {
    out.u32(static_cast<std::uint32_t>(run.host));
    out.u32(run.n_ranks);
  }
  return out.take();
}

EncodedMessage encode_welcome(const WelcomePlace& place, SharedBytes hosts) {
  return {encode_place(place), std::move(hosts)};
}

std::string Welcome::host_of(int of_rank) const {
  const auto at = static_cast<std::size_t>(of_rank);
  if (of_rank < 0 || at >= host_index_of_rank.size()) return "";
  return host_names.at(static_cast<std::size_t>(host_index_of_rank[at]));
}

std::uint32_t request_of(const ClientMessage& message) {
  struct Visitor {
    std::uint32_t operator()(const JoinMessage&) const { return 0; }
    std::uint32_t operator()(const AbortMessage&) const { return 0; }
    std::uint32_t operator()(const ComplainMessage&) const { return 0; }
    std::uint32_t operator()(const SetMessage& m) const { return m.request; }
    std::uint32_t operator()(const GetMessage& m) const { return m.request; }
    std::uint32_t operator()(const DeleteMessage& m) const { return m.request; }
    std::uint32_t operator()(const BarrierMessage& m) const { return m.request; }
    std::uint32_t operator()(const NcclPutMessage& m) const { return m.request; }
    std::uint32_t operator()(const NcclGetMessage& m) const { return m.request; }
    std::uint32_t operator()(const LeaveMessage& m) const { return m.request; }
  };
  return std::visit(Visitor(), message);
}

std::string attribution(const AbortNotice& notice) {
  std::string out = notice.rank >= 0 ? "rank " + std::to_string(notice.rank) : "drun";
  if (!notice.host.empty()) out += " on " + notice.host;
  if (notice.pid > 0) out += " (pid " + std::to_string(notice.pid) + ")";
  return out;
}

}  // namespace drun::rendezvous
