// Shared by the C functions: the process's state, and the turn in which each call runs.
#pragma once

#include "runtime/src/call_queue.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu_poller.h"
#include "runtime/src/last_error.h"
#include "runtime/src/process.h"

namespace drun::runtime {

// One per process, created by the first call.
struct RuntimeState {
  CallQueue queue;
  Process process;  // in turn, except where noted there
  GpuPoller gpu_poller;

  RuntimeState();

 private:
  void begin_polling();  // in turn
  void poll();
};

// Never destroyed: a process that exits without drun_finalize just exits, and its peers see its connections close.
// Inline in every call: a small collective takes little longer than a few function calls.
[[gnu::always_inline]] inline RuntimeState& state() {
  static RuntimeState* const instance = new RuntimeState;
  return *instance;
}

// Runs `f` in its turn. A forked child's calls fail at once, because the turn may have been taken when it was forked.
template <typename F>
Status in_turn(F f) {
  RuntimeState& all = state();
  if (all.process.is_forked_child()) return f(all.process);
  return all.queue.run([&] { return f(all.process); });
}

template <typename F>
int guarded(F f) noexcept {
  return caught([&] { return in_turn(f); });
}

}  // namespace drun::runtime
