// Admits a few coroutines at a time, because sshd on a jump host drops connections if many log in at once.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "base/asio.h"

namespace drun::transport {

// Admits in the order of arrival. Must outlive its passes.
class ConnectionLimit {
 public:
  ConnectionLimit(asio::any_io_executor executor, int n_at_once) : executor_(std::move(executor)), n_free_(n_at_once) {}

  // One place, released by the destructor or after `limit`, so that a holder that gets stuck does not block others.
  class Pass {
   public:
    Pass(ConnectionLimit& connection_limit, Clock::duration limit)
        : connection_limit_(connection_limit),
          guard_(connection_limit.executor_, Clock::now() + limit, [this] { give_back(); }) {}
    ~Pass() { give_back(); }

   private:
    void give_back() {
      if (std::exchange(held_, false)) connection_limit_.leave();
    }
    ConnectionLimit& connection_limit_;
    bool held_ = true;
    DeadlineGuard guard_;
  };

  // Null if the deadline passed first.
  Task<std::unique_ptr<Pass>> enter(Deadline deadline, Clock::duration limit) {
    if (n_free_ > 0) {
      --n_free_;
    } else {
      const auto turn = std::make_shared<Event>(executor_);
      queue_.push_back(turn);
      const bool in_time = co_await turn->wait_until(deadline);
      if (!in_time) {
        queue_.erase(std::find(queue_.begin(), queue_.end(), turn));
        co_return nullptr;
      }
    }
    co_return std::make_unique<Pass>(*this, limit);
  }

 private:
  void leave() {
    if (queue_.empty()) {
      ++n_free_;
      return;
    }
    queue_.front()->notify();
    queue_.pop_front();
  }

  asio::any_io_executor executor_;
  int n_free_;
  std::deque<std::shared_ptr<Event>> queue_;
};

}  // namespace drun::transport
