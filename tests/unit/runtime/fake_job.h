// A job whose ranks are threads of this process and whose rendezvous is a map. Ranks use real TCP only; with
// DRUN_FAKE_JOB=memory all of them share memory, with DRUN_FAKE_JOB=hosts those of a host do.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "rendezvous/client.h"
#include "runtime/src/backend/tcp/socket.h"
#include "runtime/src/communicator.h"
#include "runtime/src/job_context.h"

namespace drun::runtime::testing {

// An address and port, as a rank publishes them, on which no process listens any more. Empty: no socket was made.
inline std::string address_without_listener() {
  const auto listener = listen_on("127.0.0.1", 1);
  return listener ? "127.0.0.1 " + std::to_string(listener->port) : "";
}

class FakeJob {
 public:
  explicit FakeJob(int size, std::chrono::milliseconds op_timeout = std::chrono::seconds(30)) : size_(size) {
    key_.fill(7);
    timeouts_.init = std::chrono::seconds(30);
    timeouts_.op = op_timeout;
    for (int rank = 0; rank < size; ++rank) wakeups_.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    for (int rank = 0; rank < size; ++rank) host_of_rank_.push_back(rank);
    const char* const topology = std::getenv("DRUN_FAKE_JOB");
    if (topology == nullptr) return;
    if (topology == std::string_view("memory")) {
      share_memory();
    } else if (topology == std::string_view("hosts")) {
      // Two ranks per host, one on the last host if their number is odd; three on the first if there are more than six.
      std::vector<int> hosts;
      for (int rank = 0; rank < size; ++rank) hosts.push_back(size > 6 && rank == 2 ? 0 : rank / 2);
      place_on_hosts(hosts);
    } else {
      std::fprintf(stderr, "DRUN_FAKE_JOB=%s: memory, hosts, or unset\n", topology);
      std::abort();
    }
  }

  // Changes the values that `rank` reads.
  using Bend = std::function<std::string(int rank, const std::string& key, const std::string& value)>;
  void bend(Bend bend) { bend_ = std::move(bend); }
  void set_key_of(int rank, const rendezvous::JobKey& key) { other_keys_[rank] = key; }
  // Shares memory as the agent does for ranks on one host. Each rank maps it separately.
  void share_memory() {
    memory_.clear();
    memory_.emplace_back(::memfd_create("fake", MFD_CLOEXEC));
  }
  // Takes the number of each rank's host. Each host has its own memory.
  void place_on_hosts(const std::vector<int>& host_of_rank) {
    host_of_rank_ = host_of_rank;
    several_hosts_ = true;
    memory_.clear();
    for (int host = 0; host <= *std::max_element(host_of_rank.begin(), host_of_rank.end()); ++host) {
      memory_.emplace_back(::memfd_create("fake", MFD_CLOEXEC));
    }
  }
  void set_gpu(int rank, gpu::Presence gpu) { gpu_[rank] = gpu; }
  void set_streams(int rank, int n_streams) { n_streams_[rank] = n_streams; }
  void set_timeouts(const Timeouts& timeouts) { timeouts_ = timeouts; }

  JobContext job_context(int rank, int epoch = 1) {
    JobContext job_context;
    job_context.client = std::make_unique<FakeClient>(*this, rank, epoch);
    job_context.key = other_keys_.count(rank) != 0 ? other_keys_[rank] : key_;
    job_context.timeouts = timeouts_;
    if (gpu_.count(rank) != 0) job_context.gpu = gpu_[rank];
    if (n_streams_.count(rank) != 0) job_context.n_streams = n_streams_[rank];
    if (!memory_.empty()) {
      const auto host = several_hosts_ ? host_of_rank_[static_cast<std::size_t>(rank)] : 0;
      job_context.memory.reset(::fcntl(memory_[static_cast<std::size_t>(host)].get(), F_DUPFD_CLOEXEC, 0));
    }
    return job_context;
  }

  // Runs `body` in a thread per rank and waits for all.
  void run(const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) threads.emplace_back([&body, rank] { body(rank); });
    for (auto& thread : threads) thread.join();
  }

  void abort(const rendezvous::AbortNotice& notice) {
    const std::lock_guard<std::mutex> lock(mutex_);
    notice_ = notice;
    changed_.notify_all();
    for (const auto& wakeup : wakeups_) (void)!::write(wakeup.get(), "\1\0\0\0\0\0\0", 8);
  }

  std::string value_of(const std::string& key, std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return values_.count(key) != 0; });
    return values_.count(key) != 0 ? values_[key] : "";
  }
  int size() const { return size_; }

 private:
  class FakeClient final : public rendezvous::Client {
   public:
    FakeClient(FakeJob& job, int rank, int epoch) : job_(job) {
      welcome_.job_id = "fake";
      welcome_.epoch = epoch;
      welcome_.rank = rank;
      welcome_.size = welcome_.local_size = job.size_;
      welcome_.local_rank = rank;
      for (const int host : job.host_of_rank_) {
        const int place = job.several_hosts_ ? host : 0;
        welcome_.host_index_of_rank.push_back(place);
        while (static_cast<int>(welcome_.host_names.size()) <= place) {
          welcome_.host_names.push_back("node" + std::to_string(welcome_.host_names.size()));
        }
      }
      if (!job.several_hosts_) return;  // one host, with a name for each rank
      const auto& hosts = job.host_of_rank_;
      const int own = hosts[static_cast<std::size_t>(rank)];
      welcome_.local_size = static_cast<int>(std::count(hosts.begin(), hosts.end(), own));
      welcome_.local_rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, own));
      welcome_.cross_size = 0;
      for (int host = 0; host <= *std::max_element(hosts.begin(), hosts.end()); ++host) {
        if (std::count(hosts.begin(), hosts.end(), host) <= welcome_.local_rank) continue;
        if (host == own) welcome_.cross_rank = welcome_.cross_size;
        ++welcome_.cross_size;
      }
    }
    const rendezvous::Welcome& welcome() const override { return welcome_; }
    // On one host each rank has a name of its own, so that messages tell them apart.
    std::string host_of(int rank) const override {
      const auto& hosts = job_.host_of_rank_;
      const auto at = static_cast<std::size_t>(rank);
      return rank >= 0 && at < hosts.size() ? "node" + std::to_string(hosts[at]) : "";
    }
    Result<void> set(std::string_view key, std::string_view value, bool overwrite) override {
      const std::lock_guard<std::mutex> lock(job_.mutex_);
      auto [place, is_new] = job_.values_.emplace(in_epoch(key), value);
      if (!is_new && place->second != value) {
        if (!overwrite) return fail(Errc::kProtocol, "already set");
        place->second = value;
      }
      job_.changed_.notify_all();
      return {};
    }
    Result<std::string> get(std::string_view key_view, Milliseconds timeout, int = -1) override {
      const std::string key = in_epoch(key_view);
      std::unique_lock<std::mutex> lock(job_.mutex_);
      job_.changed_.wait_for(lock, timeout, [&] { return job_.values_.count(key) != 0 || job_.notice_; });
      if (job_.notice_) return fail(Errc::kPeerFailed, "aborted");
      if (job_.values_.count(key) == 0) return fail(Errc::kTimeout, "no key " + key);
      return job_.bend_ ? job_.bend_(welcome_.rank, key, job_.values_[key]) : job_.values_[key];
    }
    Result<bool> erase(std::string_view key) override {
      const std::lock_guard<std::mutex> lock(job_.mutex_);
      return job_.values_.erase(in_epoch(key)) > 0;
    }
    void complain(std::string_view) override {}
    Result<void> barrier(std::string_view name, Milliseconds timeout) override {
      std::unique_lock<std::mutex> lock(job_.mutex_);
      auto& arrived = job_.barriers_[in_epoch(name)];
      arrived.insert(welcome_.rank);
      job_.changed_.notify_all();
      const auto all = [&] { return static_cast<int>(arrived.size()) == job_.size_; };
      if (!job_.changed_.wait_for(lock, timeout, all)) return fail(Errc::kTimeout, "ranks are missing");
      return {};
    }
    Result<std::string> nccl_id(std::string_view communicator, int attempt, int root,
                                const std::function<Result<std::string>()>& make, Milliseconds timeout,
                                int /*cancel_fd*/) override {
      const std::string key = "id of " + std::string(communicator) + " " + std::to_string(attempt);
      if (welcome_.rank != root) return get(key, timeout);
      auto made = make();
      if (made) (void)set(key, *made, false);
      return made;
    }
    Result<void> abort(std::string_view why) override {
      job_.abort({welcome_.rank, host_of(welcome_.rank), 0, std::string(why)});
      return {};
    }
    Result<void> leave() override { return {}; }
    int fd() const override { return job_.wakeups_[static_cast<std::size_t>(welcome_.rank)].get(); }
    std::optional<rendezvous::AbortNotice> aborted() override {
      const std::lock_guard<std::mutex> lock(job_.mutex_);
      return job_.notice_;
    }

   private:
    std::string in_epoch(std::string_view name) const {
      return (welcome_.epoch == 1 ? "" : std::to_string(welcome_.epoch) + ":") + std::string(name);
    }
    FakeJob& job_;
    rendezvous::Welcome welcome_;
  };

  int size_;
  rendezvous::JobKey key_{};
  Timeouts timeouts_;
  std::map<int, int> n_streams_;  // by rank
  std::map<int, gpu::Presence> gpu_;
  std::map<int, rendezvous::JobKey> other_keys_;
  Bend bend_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<int>> barriers_;
  std::optional<rendezvous::AbortNotice> notice_;
  std::vector<Fd> wakeups_;
  std::vector<int> host_of_rank_;
  bool several_hosts_ = false;
  std::vector<Fd> memory_;  // one per host
};

}  // namespace drun::runtime::testing
