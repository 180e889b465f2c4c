// The order of a process's calls: one at a time, as they were made. Blocking calls run in their callers' threads, the
// others in the queue's own thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/stream_wait.h"

namespace drun::runtime {

// An asynchronous call. Created by the caller, then accessed through the queue only.
struct Request {
  bool submitted = false;  // false: it belongs to a group that has not ended
  bool done = false;
  Status result;
  gpu::StreamWait stream_wait;  // used by the call until it is done, then by the waiter of the request
};

// Thread-safe. Never destroyed while calls are under way: it lives as long as the process.
class CallQueue {
 public:
  // Runs `f` in its turn, in the caller's thread.
  template <typename F>
  auto run(F f) {
    const Turn turn(*this);
    return f();
  }
  // Runs `f` if no call has its turn; otherwise returns false at once.
  template <typename F>
  bool try_run(F f) {
    int free = kFree;
    if (!turns_.compare_exchange_strong(free, kTaken)) return false;
    const Turn turn(*this, Taken{});
    f();
    return true;
  }
  // Queues `work`, which must not throw, to run in its turn on the queue's thread. The first call starts the thread.
  // Throws std::system_error if it can't be started.
  void submit(std::function<void()> work);

  // Marks `request` as submitted, or as done.
  void mark_submitted(Request& request);
  void complete(Request& request, Status result);
  // Waits until `request` is done, and returns its result. Fails with DRUN_ERROR_STATE if its group is still open,
  // because then nothing would complete it.
  Status wait(const Request& request);
  // True if `request` is done.
  bool is_done(const Request& request);

 private:
  struct Entry {
    std::function<void()> work;  // empty: the entry belongs to a thread that waits for `come`
    std::condition_variable come;
    bool here = false;
  };
  struct Taken {};
  class Turn {
   public:
    explicit Turn(CallQueue& queue) : queue_(queue) { queue_.enter(); }
    Turn(CallQueue& queue, Taken) : queue_(queue) {}
    ~Turn() { queue_.leave(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    CallQueue& queue_;
  };

  void enter();
  void leave();
  void pass_on();  // under the lock
  void serve();    // the queue's thread

  std::mutex mutex_;
  // The turn is passed without the lock while no call waits. kContended: calls may be waiting.
  enum Turns : int { kFree, kTaken, kContended };
  std::atomic<int> turns_{kFree};
  std::deque<Entry*> waiting_;  // owned by the queue if they have work, else by the waiting thread
  std::unique_ptr<Entry> for_our_thread_;
  pid_t has_thread_ = -1;  // process of the queue's thread; a forked child has none
  std::condition_variable work_comes_, something_done_;
};

}  // namespace drun::runtime
