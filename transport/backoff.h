// Pauses between tries to connect with an sshd that drops connections, because many clients log in at once
// (MaxStartups of sshd_config).
#pragma once

#include <chrono>
#include <optional>
#include <random>

#include "base/clock.h"

namespace drun::transport {

class Backoff {
 public:
  // When to try again, from now on; each pause is twice as long as the one before, give or take a half. None after the
  // eighth try, and none that would begin after `deadline`.
  std::optional<Deadline> next(Deadline deadline) {
    pause_ *= 2;
    const Deadline next = Clock::now() + pause_ / 2 + pause_ * static_cast<int>(random_() % 100) / 100;
    if (++n_tries_ == kMaxTries || next >= deadline) return std::nullopt;
    return next;
  }

 private:
  static constexpr int kMaxTries = 8;
  Clock::duration pause_ = std::chrono::milliseconds(50);
  int n_tries_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace drun::transport
