#include "runtime/src/gpu/hang_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/stall_watch.h"

namespace drun::runtime::gpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kStatus = 75;  // EX_TEMPFAIL: drun's status for a deadline

}  // namespace

class Watchman {
 public:
  void add(Watchdog& dog) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (has_thread_ != ::getpid()) start();
    dogs_.push_back(&dog);
    changed_.notify_all();
  }
  void remove(Watchdog& dog) {
    std::unique_lock<std::mutex> lock(mutex_);
    dogs_.erase(std::remove(dogs_.begin(), dogs_.end(), &dog), dogs_.end());
    changed_.wait(lock, [&] { return polled_ != &dog; });
  }

 private:
  void start() {
    const BlockedSignals blocked;
    std::thread([this] { watch(); }).detach();
    has_thread_ = ::getpid();
    polled_ = nullptr;
  }
  void watch() {
    ::pthread_setname_np(::pthread_self(), "drun-guard");
    std::unique_lock<std::mutex> lock(mutex_);
    StallWatch stops(Watchdog::kInterval);
    auto last = Clock::now();
    for (;;) {
      if (dogs_.empty()) {
        changed_.wait(lock);
        last = Clock::now();
        stops = StallWatch(Watchdog::kInterval);
        continue;
      }
      changed_.wait_for(lock, Watchdog::kInterval);
      const auto now = Clock::now();
      const auto passed = now - std::exchange(last, now) - stops.poll(now);
      poll_all(lock, passed);
    }
  }
  // Without the lock during a poll, which may take long. Others may come and go meanwhile.
  void poll_all(std::unique_lock<std::mutex>& lock, Clock::duration passed) {
    const std::vector<Watchdog*> all = dogs_;
    for (Watchdog* const dog : all) {
      if (std::find(dogs_.begin(), dogs_.end(), dog) == dogs_.end()) continue;
      polled_ = dog;
      lock.unlock();
      dog->poll(passed);
      lock.lock();
      polled_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watchdog*> dogs_;
  Watchdog* polled_ = nullptr;
  pid_t has_thread_ = -1;
};

namespace {

// Never destroyed: its thread runs to the end of the process.
Watchman& watchman() {
  static Watchman* const one = new Watchman;
  return *one;
}

}  // namespace

void Watchdog::begin() { watchman().add(*this); }

void Watchdog::end() { watchman().remove(*this); }

void end_process(const std::string& text) {
  std::fprintf(stderr, "drun: error: %s: ending this process\n", text.c_str());
  ::_exit(kStatus);
}

HangGuard::HangGuard(std::string who, const char* function, std::chrono::milliseconds limit)
    : who_(std::move(who)), function_(function), limit_(limit), left_(limit) {
  begin();
}

void HangGuard::poll(std::chrono::nanoseconds passed) {
  left_ -= passed;
  if (left_.count() > 0) return;
  end_process(who_ + ": " + function_ + " has not come back for " + std::to_string(limit_.count() / 1000) + " s");
}

}  // namespace drun::runtime::gpu
