// The credit that a piece of worker output uses. The agent deducts it when it sends an Output, drun returns it when the
// bytes are written. Both compute it here, so that credit neither leaks nor grows.
#pragma once

#include <algorithm>
#include <cstddef>

namespace drun::control {

// Minimum charge of a piece, for the frame's header, the queue entry and the allocation. Without it a worker that
// writes single bytes would make drun use many times its credit of memory.
inline constexpr std::size_t kMinCharge = 64;

// The charge of one Output with `n_bytes` bytes, also if that is 0.
constexpr std::size_t output_charge(std::size_t n_bytes) { return std::max(n_bytes, kMinCharge); }

}  // namespace drun::control
