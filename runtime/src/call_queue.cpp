#include "runtime/src/call_queue.h"

#include <pthread.h>
#include <unistd.h>

#include <new>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"

namespace drun::runtime {

void CallQueue::enter() {
  int free = kFree;
  if (turns_.compare_exchange_strong(free, kTaken)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (turns_.exchange(kContended) == kFree) return;
  Entry entry;
  waiting_.push_back(&entry);
  entry.come.wait(lock, [&] { return entry.here; });
}

void CallQueue::leave() {
  int taken = kTaken;
  if (turns_.compare_exchange_strong(taken, kFree)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  pass_on();
}

void CallQueue::pass_on() {
  if (waiting_.empty()) {
    turns_ = kFree;
    return;
  }
  Entry* next = waiting_.front();
  waiting_.pop_front();
  if (next->work) {
    for_our_thread_.reset(next);
    work_comes_.notify_one();
  } else {
    next->here = true;
    next->come.notify_one();
  }
}

void CallQueue::submit(std::function<void()> work) {
  auto entry = std::make_unique<Entry>();
  entry->work = std::move(work);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_thread_ != ::getpid()) {
    if (has_thread_ >= 0) {
      // A forked child. Its condition variables still count the parent's waiting threads, and would wake those.
      new (&work_comes_) std::condition_variable;
      new (&something_done_) std::condition_variable;
    }
    const BlockedSignals blocked;
    std::thread([this] { serve(); }).detach();
    has_thread_ = ::getpid();
  }
  waiting_.push_back(entry.get());
  (void)entry.release();
  if (turns_.exchange(kContended) == kFree) pass_on();
}

void CallQueue::serve() {
  ::pthread_setname_np(::pthread_self(), "drun");
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    work_comes_.wait(lock, [this] { return for_our_thread_ != nullptr; });
    auto entry = std::move(for_our_thread_);
    lock.unlock();
    entry->work();
    entry.reset();
    lock.lock();
    pass_on();
  }
}

void CallQueue::mark_submitted(Request& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  request.submitted = true;
}

void CallQueue::complete(Request& request, Status result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  request.result = std::move(result);
  request.done = true;
  something_done_.notify_all();
}

Status CallQueue::wait(const Request& request) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!request.submitted) return failure(DRUN_ERROR_STATE, "drun_wait: the group of this call has not ended");
  something_done_.wait(lock, [&] { return request.done; });
  return request.result;
}

bool CallQueue::is_done(const Request& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return request.done;
}

}  // namespace drun::runtime
