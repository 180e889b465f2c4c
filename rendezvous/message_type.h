// The first byte of every message. Private to the functions of protocol.h.
#pragma once

#include <cstdint>

namespace drun::rendezvous {

enum class MessageType : std::uint8_t {
  kJoin = 1,
  kSet = 2,
  kGet = 3,
  kBarrier = 4,
  kNcclPut = 5,
  kNcclGet = 6,
  kAbort = 7,
  kLeave = 8,
  kComplain = 9,
  kDelete = 10,
  kWelcome = 16,
  kDone = 17,
  kValue = 18,
  kError = 19,
  kAborted = 20,
  kDeleted = 21,
};

}  // namespace drun::rendezvous
