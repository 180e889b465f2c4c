// Pauses between tries to connect with an sshd that drops connections, because many clients log in at once
// (MaxStartups of sshd_config).
#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"

namespace drun::transport {

// True if the words of OpenSSH's client on stderr, at LogLevel INFO, are those of a connection that a server on the way
// closed before its banner. The end of a proxy looks like a drop to the client behind it, so a drop counts if it comes
// first, or if there are two: that of the proxy, and the client's own. A proxy that fails without a word is not told
// from a drop.
inline bool says_dropped(std::string_view words) {
  int n_drops = 0;
  bool has_other_words = false;  // before the first drop
  for (const auto line : split(words, '\n')) {
    // "kex_exchange_identification: Connection closed by remote host"; "ssh_..." before OpenSSH 7.9.
    if (line.find("_exchange_identification: ") != std::string_view::npos) {
      ++n_drops;
    } else if (n_drops == 0 && !trim(line).empty() && !starts_with(line, "Warning: ")) {
      has_other_words = true;
    }
  }
  return n_drops > 1 || (n_drops == 1 && !has_other_words);
}

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
