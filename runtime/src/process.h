// The drun state of a process: at most one job at a time. Used by the C functions, each in its turn (CallQueue).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/fd.h"
#include "runtime/src/communicator.h"

namespace drun::runtime {

// One call at a time, except where noted.
class Process {
 public:
  Status init(const drun_init_options* options);
  Status finalize();
  // Fails before init(), in a forked child, and for an invalid handle. The communicators that every job has are created
  // on first use.
  Outcome<Communicator*> communicator(const char* function, drun_comm comm = DRUN_COMM_WORLD,
                                      std::chrono::milliseconds timeout = {}) {
    if (comm == DRUN_COMM_WORLD && all_ != nullptr && !is_forked_child()) return all_;
    return other_communicator(function, comm, timeout);
  }
  Outcome<drun_comm> split(Communicator& parent, int color, int key, const CallOptions& options);
  Status free(drun_comm comm);
  // True in a child that was forked after init(), where calls can't work.
  static bool is_forked_child() { return forked_.load(std::memory_order_relaxed); }

  // `begin_polling` is called once GPUs are in use: from then on poll() must be called periodically, in turn.
  // `stopped_ns` becomes JobContext's.
  void on_gpu(std::function<void()> begin_polling, std::shared_ptr<const std::atomic<std::int64_t>> stopped_ns) {
    on_gpu_ = std::move(begin_polling);
    stopped_ns_ = std::move(stopped_ns);
  }
  void poll() {
    if (all_ != nullptr && !is_forked_child()) all_->poll();
  }
  // Deregisters the memory that begins in these bytes. No-op without a job and in a forked child, where nothing is
  // registered.
  Status deregister(const void* memory, std::size_t n_bytes, const char* during) {
    return all_ != nullptr && !is_forked_child() ? all_->deregister(memory, n_bytes, during) : Status();
  }

  // These never wait for a call that is under way. Any thread.
  struct Place {
    int rank = -1, size = -1;
    int homogeneous = -1;  // of all ranks: 1 if all hosts have the same number of ranks, else 0
  };
  bool is_initialized() const;
  Place place_in(drun_comm comm) const;  // all -1 if there is no such communicator

  Status kv_set(const std::string& key, const std::string& value);
  Outcome<bool> kv_delete(const std::string& key);
  Outcome<std::string> kv_get(const std::string& key, std::chrono::milliseconds timeout);

  // Wakes the collective that is waiting. Any thread, at any time.
  void interrupt();
  // Asks the launcher to end the job. Called after interrupt(), in its turn.
  Status abort(const std::string& why);

 private:
  Outcome<Communicator*> other_communicator(const char* function, drun_comm comm, std::chrono::milliseconds timeout);
  Status check_state(const char* function) const;
  void note_place(drun_comm comm, int rank, int size, int homogeneous = -1);

  std::map<drun_comm, std::unique_ptr<Communicator>> communicators_;
  Communicator* all_ = nullptr;  // DRUN_COMM_WORLD
  mutable std::mutex places_mutex_;
  std::map<drun_comm, Place> places_;
  static void note_forks();
  static inline std::atomic<bool> in_use_{false}, forked_{false};
  static inline std::atomic<int> rendezvous_fd_{-1};  // of the client; -1 if there is none
  std::function<void()> on_gpu_;
  std::shared_ptr<const std::atomic<std::int64_t>> stopped_ns_;
  std::uint32_t next_comm_ = kFirstCommOfSplit;
  Fd interrupt_ = make_interrupt();
  static Fd make_interrupt();
};

}  // namespace drun::runtime
