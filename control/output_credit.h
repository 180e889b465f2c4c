// How much credit a piece of worker output uses up. The agent takes it when it sends an Output, drun gives it back when
// the bytes are written: both ask here, so that credit neither leaks nor grows.
#pragma once

#include <algorithm>
#include <cstddef>

namespace drun::control {

// What a piece costs besides its bytes: the frame's header, the queue's entry, the allocation. Without it a worker that
// writes single bytes would make whoever holds them need many times its credit.
inline constexpr std::size_t kLeastCharge = 64;

// Of one Output with `n_bytes` bytes; one without bytes is no exception.
constexpr std::size_t output_charge(std::size_t n_bytes) { return std::max(n_bytes, kLeastCharge); }

}  // namespace drun::control
