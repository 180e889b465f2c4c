// Threads for blocking calls: name lookups, reading keys.
#pragma once

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/asio.h"

namespace drun::transport {

// A name whose servers are silent takes its thread for many seconds, so all hosts may ask at once, up to a limit. The
// destructor does not wait for running calls, because a lookup may never return.
class HelperPool {
 public:
  explicit HelperPool(std::size_t n_hosts)
      : pool_(std::make_unique<asio::thread_pool>(std::clamp<std::size_t>(n_hosts, 1, 64))) {}
  ~HelperPool() {
    pool_->stop();
    std::thread([pool = std::move(pool_)] { pool->join(); }).detach();
  }
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;
  asio::thread_pool& get() { return *pool_; }

 private:
  std::unique_ptr<asio::thread_pool> pool_;
};

}  // namespace drun::transport
