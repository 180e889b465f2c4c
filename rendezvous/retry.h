// The pauses of a client whose connection the server closed because it was too busy. Pure. Private to the client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace drun::rendezvous {

inline constexpr std::chrono::milliseconds kFirstRetryPause{50};
inline constexpr std::chrono::milliseconds kLastRetryPause{2000};

// After `n_failed` connections in succession, from 1: twice as long each time, up to a maximum, and between a half and
// the whole of that, so that ranks that were refused together don't come back together. `random`: any number.
inline std::chrono::milliseconds retry_pause(int n_failed, std::uint32_t random) {
  const auto whole = std::min(kFirstRetryPause * (1 << std::clamp(n_failed - 1, 0, 10)), kLastRetryPause);
  return whole / 2 + std::chrono::milliseconds(random % static_cast<std::uint32_t>(whole.count() / 2 + 1));
}

}  // namespace drun::rendezvous
