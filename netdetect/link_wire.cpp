#include "netdetect/link_wire.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "netdetect/link_target.h"

namespace drun::netdetect {
namespace {

constexpr unsigned kClientSends = 1, kServerSends = 2;
constexpr double kMicrosecondsPerSecond = 1e6;

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::llround(std::clamp(value, 0.0, 1e18))); }

}  // namespace

std::string encode_order(const LinkOrder& order) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(order.kind));
  std::string session = order.session;
  session.resize(kSessionBytes);
  out.raw(session);
  out.u16(order.udp_port);
  out.u16(order.n_streams);
  out.u8(static_cast<std::uint8_t>((order.client_sends ? kClientSends : 0) | (order.server_sends ? kServerSends : 0)));
  out.u32(order.time_ms);
  out.u64(order.max_rate);
  out.u16(order.segment_bytes);
  return out.take();
}

std::optional<LinkOrder> decode_order(std::string_view bytes) {
  ByteReader in(bytes);
  LinkOrder order;
  const unsigned kind = in.u8();
  order.kind = static_cast<LinkOrderKind>(kind);
  order.session = std::string(in.raw(kSessionBytes));
  order.udp_port = in.u16();
  order.n_streams = in.u16();
  const unsigned flags = in.u8();
  order.client_sends = (flags & kClientSends) != 0;
  order.server_sends = (flags & kServerSends) != 0;
  order.time_ms = in.u32();
  order.max_rate = in.u64();
  order.segment_bytes = in.u16();
  if (!in.done() || kind < 1 || kind > 4) return std::nullopt;
  if (order.kind == LinkOrderKind::kMtu && order.udp_port == 0) return std::nullopt;
  if (order.kind == LinkOrderKind::kStreams) {
    if (order.n_streams < 1 || order.n_streams > kMaxStreams) return std::nullopt;
    if (order.time_ms < 1 || order.time_ms > kMaxLinkTime) return std::nullopt;
  }
  return order;
}

std::string encode_figures(const LinkFigures& figures) {
  ByteWriter out;
  out.u64(whole(figures.bits_per_second));
  out.u64(whole(figures.seconds * kMicrosecondsPerSecond));
  out.u64(figures.n_segments);
  out.u64(figures.n_retransmits);
  return out.take();
}

LinkFigures decode_figures(std::string_view bytes) {
  ByteReader in(bytes);
  LinkFigures figures;
  figures.bits_per_second = static_cast<double>(in.u64());
  figures.seconds = static_cast<double>(in.u64()) / kMicrosecondsPerSecond;
  figures.n_segments = in.u64();
  figures.n_retransmits = in.u64();
  return figures;
}

}  // namespace drun::netdetect
