// Blocks asynchronous signals in the calling thread, so that threads it starts inherit the mask and the program's own
// threads handle its signals. Synchronous faults (SEGV, BUS, FPE, ILL, TRAP) stay unblocked.
#pragma once

#include <signal.h>

namespace drun {

// Blocks from construction to destruction, both on the same thread.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, own);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace drun
