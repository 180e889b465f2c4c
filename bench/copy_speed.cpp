#include "bench/copy_speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/ranks.h"
#include "runtime/include/drun/drun.h"

namespace drun::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 8;
constexpr std::size_t kBytesOfTry = 1u << 20;  // minimum, or the clock would be measured

}  // namespace

Result<double> copy_speed(char* into, const char* from, std::size_t n_bytes) {
  double speed = 0;
  const std::size_t n_copies = std::max<std::size_t>(1, kBytesOfTry / std::max<std::size_t>(n_bytes, 64));
  for (int i = 0; i < kTries; ++i) {
    if (auto ok = checked(drun_barrier(DRUN_COMM_WORLD, nullptr)); !ok) return fail(std::move(ok.error()));
    const auto began = Clock::now();
    for (std::size_t k = 0; k < n_copies; ++k) {
      std::memcpy(into, from, n_bytes);
      asm volatile("" : : "r"(into) : "memory");  // keeps the copy, whose result is unused
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    speed = std::max(speed, 2 * static_cast<double>(n_copies * n_bytes) / std::max(seconds, 1e-9));
  }
  if (auto ok = checked(drun_allreduce(&speed, &speed, 1, DRUN_FLOAT64, DRUN_SUM, DRUN_COMM_WORLD, nullptr)); !ok) {
    return fail(std::move(ok.error()));
  }
  return speed;
}

}  // namespace drun::bench
