// Time that passes when a test says so: Clock is moved on in place of waiting for it, so that a wait of a minute takes
// milliseconds. For code whose deadlines are Clock's and whose I/O is a fake.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>

#include "base/asio.h"

namespace drun::testing {

class VirtualTime {
 public:
  explicit VirtualTime(asio::io_context& io) : io_(io) {}

  // Runs what is ready, at this moment. Throws if that never ends: some code waits for a moment that has passed.
  void settle() {
    for (int n_rounds = 0;; ++n_rounds) {
      if (n_rounds > kMaxRounds) throw std::runtime_error("something is always ready: time can't pass");
      io_.restart();  // it stops when nothing waits for anything
      // A timer that is due already makes Asio look at all of them: the kernel knows nothing of our time.
      bool nudged = false;
      Timer nudge(io_);
      nudge.expires_at(Deadline());
      nudge.async_wait([&nudged](const boost::system::error_code&) { nudged = true; });
      std::size_t n_handlers = 0;
      while (!nudged) n_handlers += io_.poll();
      n_handlers += io_.poll();
      if (n_handlers <= 1) return;  // only the nudge
    }
  }

  void run_for(Clock::duration time) {
    run_until([] { return false; }, time);
  }

  // False: it did not come about within the time.
  bool run_until(const std::function<bool()>& reached, Clock::duration limit) {
    const Deadline end = Clock::now() + limit;
    settle();
    while (!reached()) {
      if (Clock::now() >= end) return false;
      Clock::was_stopped_for(-std::min<Clock::duration>(kStep, end - Clock::now()));
      settle();
    }
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds kStep{10};
  static constexpr int kMaxRounds = 100'000;

  asio::io_context& io_;
};

}  // namespace drun::testing
