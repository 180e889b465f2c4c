// Whether the process of another rank on this host still runs: asked by pidfd, without a word from the process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace drun::runtime {

// A process, as it tells the others itself, in memory that they share. A pid may be given to another process later, and
// means something in its own namespace only: hence the other two. Zero bytes: it has told nothing.
class ProcessMark {
 public:
  // That of the calling process; stays untold where /proc is none of ours.
  void tell();
  pid_t pid() const { return pid_.load(std::memory_order_acquire); }
  // The process has told its mark and is no more. False where that can't be known: in another namespace of pids, or
  // where the kernel or the limit on open files gives no pidfd. Holds no descriptor: each look opens its own.
  bool has_ended() const;

 private:
  std::atomic<std::int32_t> pid_;  // told last
  std::atomic<std::uint64_t> start_, pid_namespace_;
};

}  // namespace drun::runtime
