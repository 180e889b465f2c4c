// Time that passes when a test says so: Clock is moved on in place of waiting for it, so that a wait of a minute takes
// milliseconds. For code whose deadlines are Clock's and whose I/O is a fake.
#pragma once

#include <chrono>
#include <functional>

#include "base/asio.h"

namespace drun::testing {

class VirtualTime {
 public:
  explicit VirtualTime(asio::io_context& io) : io_(io) {}

  // Runs what is ready, at this moment.
  void settle() {
    for (;;) {
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

  asio::io_context& io_;
};

}  // namespace drun::testing
