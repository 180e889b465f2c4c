// Messages between the two ends of a link measurement, after the proofs. Fixed sizes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "netdetect/link.h"

namespace drun::netdetect {

inline constexpr std::size_t kSessionBytes = 16;
inline constexpr std::size_t kEchoBytes = 64;

enum class LinkOrderKind : std::uint8_t {
  kEcho = 1,     // each kEchoBytes are sent back
  kMtu = 2,      // datagrams in both directions
  kStreams = 3,  // this connection directs a bandwidth measurement
  kData = 4,     // this connection is one of its streams
};

struct LinkOrder {
  LinkOrderKind kind = LinkOrderKind::kEcho;
  std::string session;          // kSessionBytes, random; of kMtu, kStreams, kData
  std::uint16_t udp_port = 0;   // of the client
  std::uint16_t n_streams = 0;  // 1 to kMaxStreams
  bool client_sends = false, server_sends = false;
  std::uint32_t time_ms = 0;        // at most kMaxLinkTime
  std::uint64_t max_rate = 0;       // bits/s per direction, over all streams; 0: no limit
  std::uint16_t segment_bytes = 0;  // payload of each segment; 0: TCP's choice
};

inline constexpr std::size_t kLinkOrderBytes = 1 + kSessionBytes + 2 + 2 + 1 + 4 + 8 + 2;
std::string encode_order(const LinkOrder& order);
std::optional<LinkOrder> decode_order(std::string_view bytes);  // nullopt: not an order, or beyond the limits

// Figures of one end: the rate of incoming bytes, and the segments that its own TCP sent.
struct LinkFigures {
  double bits_per_second = 0, seconds = 0;          // received
  std::uint64_t n_segments = 0, n_retransmits = 0;  // sent
};

inline constexpr std::size_t kLinkFiguresBytes = 8 + 8 + 8 + 8;
std::string encode_figures(const LinkFigures& figures);
LinkFigures decode_figures(std::string_view bytes);  // of kLinkFiguresBytes

}  // namespace drun::netdetect
