// ProxyCommand and ProxyJump: a child of ours whose stdin and stdout are the connection.
#pragma once

#include <memory>
#include <string>

#include "base/asio.h"
#include "base/fd.h"
#include "transport/child_process.h"
#include "transport/ssh_config.h"

namespace drun::transport {

// Owns the child and reads its stderr. end() and then join().
class Proxy {
 public:
  // The shell line that reaches `target`, "" if it is connected directly.
  static std::string command_for(const SshTarget& target);
  // Starts it; `socket` becomes our end of its stdio.
  static Result<std::unique_ptr<Proxy>> start(asio::io_context& io, const std::string& command, Fd& socket);

  void end();
  bool failed() const { return child_->ended() && child_->exit_status() != 0; }
  // The last line it wrote to stderr.
  std::string stderr_text() const;
  // Whether it is an ssh client whose own server hung up before saying anything (MaxStartups on a jump host).
  bool was_dropped() const;
  // Waits a little for its last words once the connection has ended.
  Task<void> settle();
  Task<void> join();

 private:
  struct Impl;
  Proxy(asio::io_context& io, std::unique_ptr<ChildProcess> child, Fd err);
  Task<void> drain_stderr();

  std::unique_ptr<ChildProcess> child_;
  std::shared_ptr<Impl> impl_;
  Event stderr_done_;
  TaskGroup tasks_;
};

}  // namespace drun::transport
