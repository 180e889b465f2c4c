#include "runtime/src/gpu_poller.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/blocked_signals.h"
#include "base/stall_watch.h"

namespace drun::runtime {

void GpuPoller::begin() {
  if (process_ == ::getpid()) return;
  const BlockedSignals blocked;
  std::thread([this] { run(); }).detach();
  process_ = ::getpid();
}

void GpuPoller::stop() {
  if (process_ != ::getpid()) return;  // in a forked child the lock may be held forever
  const std::lock_guard<std::mutex> lock(polling_);
  is_over_ = true;
}

void GpuPoller::run() {
  ::pthread_setname_np(::pthread_self(), "drun-gpu");
  StallWatch stops(kInterval);
  for (;;) {
    std::this_thread::sleep_for(kInterval);
    *stopped_ns_ += std::chrono::nanoseconds(stops.poll()).count();
    const std::lock_guard<std::mutex> lock(polling_);
    if (is_over_) return;
    poll_();
  }
}

}  // namespace drun::runtime
