// Threads for blocking calls: name lookups, reading keys.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "base/asio.h"

namespace drun::transport {

// The destructor does not wait for running calls, because a name lookup may never return.
class HelperPool {
 public:
  HelperPool() : pool_(std::make_unique<asio::thread_pool>(4)) {}
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
