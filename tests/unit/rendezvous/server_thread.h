// A rendezvous server on a thread of its own, and a record of its events.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/asio.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"

namespace drun::rendezvous {

inline std::vector<Member> members(int n_ranks, int per_host = 2) {
  std::vector<Member> out;
  for (int rank = 0; rank < n_ranks; ++rank) {
    Member m;
    m.rank = rank;
    m.local_rank = rank % per_host;
    m.local_size = per_host;
    m.cross_rank = rank / per_host;
    m.cross_size = (n_ranks + per_host - 1) / per_host;
    m.host_index = m.cross_rank;
    m.host = "node" + std::to_string(m.cross_rank);
    out.push_back(m);
  }
  return out;
}

class ServerThread {
 public:
  explicit ServerThread(int n_ranks, const std::string& address = "127.0.0.1")
      : work_(asio::make_work_guard(io_)), address_(address) {
    ServerEvents events;
    events.joined = [this](int rank, int) { note("joined " + std::to_string(rank)); };
    events.left = [this](int rank, bool orderly) { note((orderly ? "left " : "lost ") + std::to_string(rank)); };
    events.abort_requested = [this](const Abort& a) { note("abort by " + std::to_string(a.rank) + ": " + a.why); };
    server_ = Server::create(io_.get_executor(), key_, members(n_ranks), "job-7", std::move(events));
    thread_ = std::thread([this] { io_.run(); });
    if (!address.empty()) {
      on_loop([this, &address] { port_ = server_->listen(address).value_or(-1); });
    }
  }
  ~ServerThread() {
    on_loop([this] {
      server_->stop();
      asio::co_spawn(io_, server_->join(), [this](std::exception_ptr) { work_.reset(); });
    });
    thread_.join();
  }

  void on_loop(std::function<void()> f) {
    std::promise<void> done;
    asio::post(io_, [&] {
      f();
      done.set_value();
    });
    done.get_future().get();
  }

  Server& server() { return *server_; }
  asio::io_context& io() { return io_; }
  int port() const { return port_; }
  const JobKey& key() const { return key_; }
  Result<std::unique_ptr<Client>> join(int rank, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return Client::join(address_, port_, key_, rank, timeout);
  }

  // Waits until `event` has happened `times` times. False after 10 s.
  bool told(const std::string& event, int times = 1) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return events_[event] >= times; });
  }
  int count(const std::string& event) {
    std::unique_lock<std::mutex> lock(mutex_);
    return events_[event];
  }

 private:
  void note(const std::string& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++events_[event];
    changed_.notify_all();
  }

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  JobKey key_ = make_job_key();
  std::string address_;
  std::unique_ptr<Server> server_;
  int port_ = -1;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> events_;
};

// Runs `body(rank)` for ranks 0 to n_ranks - 1, a thread each, and joins them.
inline void in_ranks(int n_ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n_ranks; ++rank) threads.emplace_back(body, rank);
  for (auto& thread : threads) thread.join();
}

}  // namespace drun::rendezvous
