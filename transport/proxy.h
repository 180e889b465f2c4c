// ProxyCommand and ProxyJump: a child process whose stdin and stdout are the connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/fd.h"
#include "transport/child_process.h"
#include "transport/ssh_config.h"

namespace drun::transport {

// Owns the child and reads its stderr. Call end() and then join().
class Proxy {
 public:
  // The command that connects to `target`, empty for a direct connection. A ProxyCommand runs in the user's shell, as
  // in OpenSSH.
  static std::vector<std::string> command_for(const SshTarget& target);
  // Starts `command`; `socket` becomes this side's end of its stdin and stdout.
  static Result<std::unique_ptr<Proxy>> start(asio::io_context& io, const std::vector<std::string>& command,
                                              Fd& socket);

  void end();
  bool failed() const { return child_->ended() && child_->exit_status() != 0; }
  // The last lines that it wrote to stderr, clean and without blank ones.
  std::vector<std::string> words() const;
  // True for an ssh client whose server hung up before its banner (MaxStartups on a jump host).
  bool was_dropped() const;
  // Waits briefly for the rest of its stderr, and for its exit status, once the connection has ended.
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
