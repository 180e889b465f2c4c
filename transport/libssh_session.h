// One libssh session, non-blocking: libssh's state machine on one side, Asio's readiness on the other.
#pragma once

#include <libssh/libssh.h>
#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/fd.h"
#include "transport/ssh_config.h"

namespace drun::transport {

// Owns the session and, with it, the socket. libssh may close its descriptor on any error, so Asio watches a duplicate.
// Used by one coroutine at a time; only the owner makes libssh calls on this session.
class LibsshSession {
 public:
  // `host_keys`: host key types in order of preference, "" = libssh's default.
  static Result<std::unique_ptr<LibsshSession>> create(asio::io_context& io, const SshTarget& target,
                                                       const std::string& host_keys, Fd socket);
  ~LibsshSession();
  LibsshSession(const LibsshSession&) = delete;
  LibsshSession& operator=(const LibsshSession&) = delete;

  ssh_session raw() const { return session_; }
  asio::posix::stream_descriptor& watched() { return watched_; }

  // Banner and key exchange.
  Task<Result<void>> handshake();

  // Repeats `step` (an int()) until it returns something else than `again`, waiting for the socket in between. An error
  // means that the connection is gone; a refusal by the peer is a result.
  template <typename Step>
  Task<Result<int>> until_done(Step step, int again) {
    for (;;) {
      if (!watched_.is_open()) co_return fail(Errc::kCanceled, "canceled");
      const int answer = step();
      if (answer != again) co_return answer;
      if (!alive()) co_return fail(Errc::kClosed, error_text());
      co_await wait_for_socket();
    }
  }
  // Waits between two calls of such a step, in the direction (read or write) that libssh needs.
  Task<void> wait_for_socket();

  // Check after every call of libssh: false if libssh has closed its socket or lost the peer.
  bool alive() const { return ssh_get_fd(session_) >= 0 && ssh_is_connected(session_) != 0; }
  // True once the peer has shown that it is an ssh server.
  bool has_banner() const { return ssh_get_serverbanner(session_) != nullptr; }
  // libssh's error message, on one line.
  std::string error_text() const;
  // Makes all waits for the socket fail; no further step is run.
  void abort();
  // Closes the connection now. Only the destructor may be called afterwards.
  void disconnect();
  // Makes the kernel acknowledge at once: sshd waits for the ACK in the middle of the login (40 ms otherwise).
  void quick_ack();

 private:
  LibsshSession(asio::io_context& io, ssh_session session) : session_(session), watched_(io) {}
  void close_given_socket();

  ssh_session session_;
  int given_ = -1;  // libssh's descriptor, and its inode; not every version of libssh closes it
  ino_t inode_ = 0;
  asio::posix::stream_descriptor watched_;
};

}  // namespace drun::transport
