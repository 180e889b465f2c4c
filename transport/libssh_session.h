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

// Owns the session and, with it, the socket. libssh closes its descriptor whenever an error strikes, so what Asio
// watches is a duplicate. One coroutine at a time; every call of libssh on this session goes through its owner.
class LibsshSession {
 public:
  // `host_keys` is the order in which host key types are asked for, "" = libssh's.
  static Result<std::unique_ptr<LibsshSession>> create(asio::io_context& io, const SshTarget& target,
                                                       const std::string& host_keys, Fd socket);
  ~LibsshSession();
  LibsshSession(const LibsshSession&) = delete;
  LibsshSession& operator=(const LibsshSession&) = delete;

  ssh_session raw() const { return session_; }
  asio::posix::stream_descriptor& watched() { return watched_; }

  // Banner and key exchange.
  Task<Result<void>> handshake();

  // Repeats `step` (an int()) until it says something else than `again`, waiting for the socket in between. An error
  // means that the connection is gone; a refusal by the peer is an answer.
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
  // Between two tries of such a step. libssh says in which direction it wants to go on.
  Task<void> wait_for_socket();

  // After every call of libssh: has it closed its socket, or lost the peer?
  bool alive() const { return ssh_get_fd(session_) >= 0 && ssh_is_connected(session_) != 0; }
  // True once the peer has shown that it is an ssh server.
  bool has_banner() const { return ssh_get_serverbanner(session_) != nullptr; }
  // libssh's own words, on one line.
  std::string error_text() const;
  // Whatever waits for the socket wakes up and fails; no further step is taken.
  void abort();
  // Closes the connection now; nothing but the destructor may follow.
  void disconnect();
  // The kernel acknowledges at once: sshd waits for it in the middle of the login (40 ms otherwise).
  void quick_ack();

 private:
  LibsshSession(asio::io_context& io, ssh_session session) : session_(session), watched_(io) {}
  void close_given_socket();

  ssh_session session_;
  int given_ = -1;  // the descriptor that libssh got, and its inode: who closes it depends on libssh's version
  ino_t inode_ = 0;
  asio::posix::stream_descriptor watched_;
};

}  // namespace drun::transport
