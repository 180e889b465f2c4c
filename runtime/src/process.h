// What a process has of drun, at most once at a time: behind the C functions, under their lock.
#pragma once

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "runtime/src/communicator.h"

namespace drun::runtime {

// The caller holds one lock for everything but interrupt().
class Process {
 public:
  Status init(const drun_init_options* options);
  Status finalize();
  bool is_initialized() const { return communicator_ != nullptr; }
  // The communicator; a failure before init and in a forked child.
  Outcome<Communicator*> communicator(const char* function) const;
  // The job; nullptr before init.
  const World* world() const { return communicator_ ? &communicator_->world() : nullptr; }

  Status kv_set(const std::string& key, const std::string& value);
  Outcome<std::string> kv_get(const std::string& key, std::chrono::milliseconds timeout);

  // From any thread, without the lock: wakes the collective that waits.
  void interrupt();
  // Then, under the lock: tells the launcher.
  Status abort(const std::string& why);

 private:
  std::unique_ptr<Communicator> communicator_;
  std::atomic<pid_t> pid_{-1};  // that called init
  int generation_ = 0;
  Fd interrupt_ = make_interrupt();
  static Fd make_interrupt();
};

}  // namespace drun::runtime
