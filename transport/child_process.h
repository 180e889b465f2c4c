// A child process of drun's own: OpenSSH's client, a proxy command, a --launch-agent hook, the agent on this host.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "base/fd.h"

namespace drun::transport {

// Owns the pid from start to reaping, so that a signal never reaches an unrelated process with a reused pid. Used on
// the I/O thread only. Destroy after join(); the destructor kills and reaps a child that was never waited for.
class ChildProcess {
 public:
  // Starts argv[0] (searched in PATH if it has no slash) in a process group of its own, with the three descriptors as
  // stdin, stdout and stderr and no other, signals unblocked and at their defaults. The caller keeps the descriptors.
  // `ends_with_us`: it gets SIGTERM if the calling thread ends, in whatever way, and has a session of its own, without
  // a terminal on which it could ask.
  static Result<std::unique_ptr<ChildProcess>> start(asio::io_context& io, const std::vector<std::string>& argv,
                                                     int stdin_fd, int stdout_fd, int stderr_fd, bool ends_with_us);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The agent of this host ends by itself once its stdin is closed, but needs time to end its workers. Killing it or
  // its guard earlier would leave the workers to the other of the two. So it gets SIGCONT, in case it is stopped,
  // instead of SIGTERM.
  struct Ending {
    bool is_agent = false;
    std::chrono::milliseconds kill_delay{2000};
  };

  // Sends SIGTERM, and SIGKILL to its process group if it has not ended within `how.kill_delay`. Idempotent.
  void end(Ending how);
  void end() { end(Ending()); }
  bool ended() const { return ended_.is_set(); }
  // -1 while it runs, 128+n after signal n.
  int exit_status() const { return exit_status_; }
  // False if it still runs at the deadline. One waiter at a time.
  Task<bool> wait_until(Deadline deadline) { return ended_.wait_until(deadline); }
  Task<void> join() { return tasks_.join(); }

 private:
  ChildProcess(asio::io_context& io, pid_t pid);
  Task<void> watch();
  Task<void> kill_after(std::chrono::milliseconds kill_delay);
  bool try_reap();

  asio::io_context& io_;
  pid_t pid_;
  Fd pidfd_;
  int exit_status_ = -1;
  bool ending_ = false;
  Event ended_;
  Timer kill_timer_;
  TaskGroup tasks_;
};

// Ignores SIGPIPE in the whole process, so that a write to a peer that is gone fails with EPIPE.
void ignore_sigpipe();

}  // namespace drun::transport
