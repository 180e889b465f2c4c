// The order of a process's calls: one at a time, as they were made. Those that block are carried out by their own
// threads, the others by one of ours.
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

// A call in the background. Made and looked at through the queue.
struct Request {
  bool submitted = false;  // false: it belongs to a group that has not ended
  bool done = false;
  Status result;
  gpu::StreamWait stream_wait;  // its call's until it is done, then that of whoever asks for it
};

// Any thread. Never destroyed while calls are under way: it lives as long as the process.
class CallQueue {
 public:
  // `f` in its turn, in the caller's thread.
  template <typename F>
  auto run(F f) {
    const Turn turn(*this);
    return f();
  }
  // `f` if it is nobody's turn; else false, at once.
  template <typename F>
  bool try_run(F f) {
    int free = kFree;
    if (!turns_.compare_exchange_strong(free, kTaken)) return false;
    const Turn turn(*this, Taken{});
    f();
    return true;
  }
  // `work`, which throws nothing, in its turn, on our thread, which the first of these starts. Throws std::system_error
  // if it can't be started.
  void submit(std::function<void()> work);

  // `request` is part of something that was submitted; or is over.
  void mark_submitted(Request& request);
  void complete(Request& request, Status result);
  // Fails with DRUN_ERROR_STATE if nobody will ever complete it: its group is still open.
  Status wait(const Request& request);
  // Whether it is over.
  bool is_done(const Request& request);

 private:
  struct Entry {
    std::function<void()> work;  // none: for the thread that waits for `come`
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
  void serve();    // our thread

  std::mutex mutex_;
  // Whose turn it is changes hands without the lock while nobody waits. kContended: somebody may wait.
  enum Turns : int { kFree, kTaken, kContended };
  std::atomic<int> turns_{kFree};
  std::deque<Entry*> waiting_;  // those with work are ours
  std::unique_ptr<Entry> for_our_thread_;
  pid_t has_thread_ = -1;  // the process that our thread is in: a forked child has none
  std::condition_variable work_comes_, something_done_;
};

}  // namespace drun::runtime
