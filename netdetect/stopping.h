// Ends coroutines from outside: stop() runs the registered actions, which close what the coroutines wait for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace drun::netdetect {

// For one thread. Shared by the owner and all coroutines that it may have to end.
class Stopping {
 public:
  bool stopped() const { return stopped_; }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    for (const auto& [id, action] : actions_) action();
  }

 private:
  friend class OnStop;
  std::map<std::uint64_t, std::function<void()>> actions_;
  std::uint64_t next_ = 0;
  bool stopped_ = false;
};

// Runs `action` at stop(), or at once if already stopped, but not after its own destruction. The action must not
// destroy an OnStop.
class OnStop {
 public:
  OnStop(std::shared_ptr<Stopping> stopping, std::function<void()> action) : stopping_(std::move(stopping)) {
    if (stopping_->stopped()) action();
    id_ = stopping_->next_++;
    stopping_->actions_[id_] = std::move(action);
  }
  ~OnStop() { stopping_->actions_.erase(id_); }
  OnStop(const OnStop&) = delete;
  OnStop& operator=(const OnStop&) = delete;

 private:
  std::shared_ptr<Stopping> stopping_;
  std::uint64_t id_ = 0;
};

}  // namespace drun::netdetect
