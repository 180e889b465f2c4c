// The interface to hosts: a Transport runs one command on a host and returns its stdin and stdout as a Channel. One
// thread (the I/O thread).
#pragma once

#include <boost/asio/buffer.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/error.h"
#include "transport/phase.h"
#include "transport/ssh_config.h"

namespace drun::transport {

// stdin and stdout of one remote command. Owned by the host's connection. Destroy only after join().
class Channel {
 public:
  virtual ~Channel() = default;
  // Reads at least one byte; 0 after an orderly end of the remote stdout. One reader at a time.
  virtual Task<Result<std::size_t>> read_some(asio::mutable_buffer buffer) = 0;
  // Writes all of it. One writer at a time. `buffer` must stay valid until it returns.
  virtual Task<Result<void>> write(asio::const_buffer buffer) = 0;
  // Sends EOF to the remote stdin; reading goes on.
  virtual void close_write() = 0;
  // The last 4 KiB that the remote command (or the ssh client) wrote to stderr.
  virtual std::string stderr_text() const = 0;
  // Exit status of the remote command, -1 while unknown, 128+n after signal n. Valid once read_some has returned 0.
  virtual int exit_status() const = 0;
  // Idempotent. Pending reads and writes finish with Errc::kCanceled or an I/O error.
  virtual void close() = 0;
  // Waits for the channel's coroutines and child process to end. Bounded after close(): a child that does not end
  // within 2 s is killed; this host's agent may take --grace and the time of its sweep.
  virtual Task<void> join() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Connects, authenticates and starts `command` (through the login shell of the remote user). Errors are
  // Errc::kUnreachable; subject is the host as typed, cause names the phase (resolve, connect, host key, login, exec)
  // and includes ssh's own message. Never asks for a password. Fails at `deadline`. `on_phase` (may be null) is called
  // at the start of each phase; the last is kAgent, or kSsh with OpenSSH's client.
  virtual Task<Result<std::unique_ptr<Channel>>> open(const SshTarget& target, const std::string& command,
                                                      Deadline deadline, const OnPhase* on_phase = nullptr) = 0;
};

// `notice` receives lines for the user: a new host key's fingerprint, a host that goes through openssh.
using Notice = std::function<void(const std::string&)>;

// A connection breaks when its host has acknowledged no data for `silence`.
std::unique_ptr<Transport> make_libssh_transport(asio::io_context& io, asio::thread_pool& helper, Notice notice,
                                                 std::chrono::milliseconds silence);
// Runs `launch_agent` words + host + command, or OpenSSH's ssh in batch mode when it is empty.
std::unique_ptr<Transport> make_openssh_transport(asio::io_context& io, std::vector<std::string> launch_agent,
                                                  std::string config_file);

}  // namespace drun::transport
