// Checks by pidfd if the process of another rank on this host still runs, without its cooperation.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace drun::runtime {

// Identity of a process, which it publishes itself in shared memory. A pid may be reused, and has a meaning in its own
// namespace only: hence the start time and the namespace. Zero bytes: nothing is published yet.
class ProcessMark {
 public:
  // Publishes the calling process. No-op if /proc belongs to another PID namespace.
  void tell();
  pid_t pid() const { return pid_.load(std::memory_order_acquire); }
  // True if the process has published its mark and has ended. False if that can't be known: in another PID namespace,
  // or if the kernel or the limit on open files denies a pidfd. Keeps no descriptor: each call opens one.
  bool has_ended() const;

 private:
  std::atomic<std::int32_t> pid_;  // stored last
  std::atomic<std::uint64_t> start_, pid_namespace_;
};

}  // namespace drun::runtime
