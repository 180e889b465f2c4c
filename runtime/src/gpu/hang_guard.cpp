#include "runtime/src/gpu/hang_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"
#include "base/stall_watch.h"

namespace drun::runtime::gpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kPollInterval{200};
constexpr int kStatus = 75;  // EX_TEMPFAIL: drun's status for a deadline

struct Watched {
  std::string who;
  const char* function;
  milliseconds limit;
  Clock::duration left;
};

class Watchman {
 public:
  unsigned long long add(Watched watched) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (has_thread_ != ::getpid()) start();
    watched_.emplace(++last_, std::move(watched));
    changed_.notify_all();
    return last_;
  }
  void remove(unsigned long long number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watched_.erase(number);
  }

 private:
  void start() {
    const BlockedSignals blocked;
    std::thread([this] { watch(); }).detach();
    has_thread_ = ::getpid();
  }
  void watch() {
    ::pthread_setname_np(::pthread_self(), "drun-guard");
    std::unique_lock<std::mutex> lock(mutex_);
    StallWatch stops(kPollInterval);
    auto last = Clock::now();
    for (;;) {
      if (watched_.empty()) {
        changed_.wait(lock);
        last = Clock::now();
        stops = StallWatch(kPollInterval);
        continue;
      }
      changed_.wait_for(lock, kPollInterval);
      const auto now = Clock::now();
      const auto passed = now - std::exchange(last, now) - stops.poll(now);
      for (auto& [number, watched] : watched_) {
        if ((watched.left -= passed).count() <= 0) end_process(watched);
      }
    }
  }
  [[noreturn]] static void end_process(const Watched& watched) {
    std::fprintf(stderr, "drun: error: %s: %s has not come back for %lld s: ending this process\n", watched.who.c_str(),
                 watched.function, static_cast<long long>(watched.limit.count() / 1000));
    ::_exit(kStatus);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<unsigned long long, Watched> watched_;
  unsigned long long last_ = 0;
  pid_t has_thread_ = -1;
};

// Never destroyed: its thread runs to the end of the process.
Watchman& watchman() {
  static Watchman* const one = new Watchman;
  return *one;
}

}  // namespace

HangGuard::HangGuard(const std::string& who, const char* function, std::chrono::milliseconds limit)
    : number_(watchman().add({who, function, limit, limit})) {}

HangGuard::~HangGuard() { watchman().remove(number_); }

}  // namespace drun::runtime::gpu
