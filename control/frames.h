// Frames of the control channel: u32 length of what follows, u8 type, body. Every byte: docs/protocol.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::control {

inline constexpr std::uint16_t kVersion = 5;
inline constexpr std::size_t kMaxFrame = 16u << 20;  // a job's environment and argv travel in one frame
inline constexpr std::size_t kMaxOutputChunk = 64u << 10;

// The agent's first bytes. Output of rc files before them is skipped.
inline constexpr std::string_view kMagic{"\0\1drun-agent\2\0\n", 15};

enum class Type : std::uint8_t {
  // agent to drun
  kHello = 1,
  kHeartbeat = 2,
  kProbeListening = 3,
  kProbeResults = 4,
  kRelayListening = 5,
  kRelayOpen = 6,
  kRelayData = 7,
  kRelayClose = 8,
  kPrepared = 9,
  kStarted = 10,
  kOutput = 11,
  kOutputEnd = 12,
  kExited = 13,
  kFinished = 14,
  kStdinCredit = 15,
  kNotice = 16,
  kCleaned = 17,
  kPong = 18,
  kDescribed = 19,
  kActivity = 20,
  kTimeline = 21,
  kLinkListening = 22,
  kLinkResults = 23,
  kFacts = 24,
  kRas = 25,
  // drun to agent
  kConfigure = 64,
  kProbeListen = 65,
  kProbeRun = 66,
  kRelayListen = 67,
  kPrepare = 68,
  kSpawn = 69,
  kStdin = 70,
  kStdinEnd = 71,
  kCredit = 72,
  kSignal = 73,
  kStop = 74,
  kClean = 75,
  kPing = 76,
  kPause = 77,
  kResume = 78,
  kDescribe = 79,
  kRecord = 80,
  kAskActivity = 81,
  kLinkListen = 82,
  kLinkRun = 83,
  kAskFacts = 84,
  kAskRas = 85,
  kResize = 86,
};

struct Frame {
  Type type = Type::kHeartbeat;
  std::string body;
};

// A body that does not fit into a frame is left out: an empty reply is an error of its request, and not of the channel,
// which a longer frame would end.
std::string encode_frame(Type type, std::string_view body);
inline bool fits_into_frame(std::string_view body) { return body.size() < kMaxFrame; }

// Cuts a byte stream into frames. An error is final.
class FrameParser {
 public:
  void push(std::string_view bytes) { buffer_.append(bytes); }
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  std::size_t start_ = 0;
};

}  // namespace drun::control
