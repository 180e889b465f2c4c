// A Channel over one libssh session: the pump between libssh's callbacks and the channel's reader and writer.
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "transport/libssh_session.h"
#include "transport/proxy.h"
#include "transport/text_tail.h"
#include "transport/transport.h"

namespace drun::transport {

// Owns a session that has logged in. One coroutine, the pump, makes all calls of libssh; read_some and write only
// notify it. Unread input is buffered up to kInboxLimit; beyond that the socket is not read.
class LibsshChannel final : public Channel {
 public:
  static constexpr std::size_t kInboxLimit = 4u << 20;

  // `proxy` may be null; it is ended with the channel. `subject` is the host as typed, for errors.
  LibsshChannel(asio::io_context& io, std::unique_ptr<LibsshSession> session, std::unique_ptr<Proxy> proxy,
                std::string subject);
  ~LibsshChannel() override;

  // Opens the ssh channel, starts the command and the pump. After an error the pump does not run.
  Task<Result<void>> start(std::string command);

  Task<Result<std::size_t>> read_some(asio::mutable_buffer buffer) override;
  Task<Result<void>> write(asio::const_buffer buffer) override;
  void close_write() override;
  std::string stderr_text() const override { return stderr_.str(); }
  int exit_status() const override { return exit_status_; }
  void close() override;
  Task<void> join() override;

 private:
  struct Watch {
    explicit Watch(const asio::any_io_executor& executor) : arm(executor) {}
    Event arm;
    bool armed = false;
  };
  enum Direction { kRead, kWrite };

  void set_callbacks();
  static int on_data(ssh_session, ssh_channel, void* data, uint32_t len, int is_stderr, void* self);
  static void on_eof(ssh_session, ssh_channel, void* self);
  static void on_close(ssh_session, ssh_channel, void* self);
  static void on_exit_status(ssh_session, ssh_channel, int status, void* self);
  static void on_exit_signal(ssh_session, ssh_channel, const char* signal, int core, const char* message,
                             const char* language, void* self);

  Task<void> pump();
  Task<void> watch(Direction direction);
  bool poll_libssh();
  bool feed_libssh();
  void arm(Direction direction);
  bool at_end() const { return ended_ || (eof_seen_ && exit_status_ >= 0); }
  void finish();
  Error lost(const std::string& why) const;

  std::unique_ptr<LibsshSession> session_;
  std::unique_ptr<Proxy> proxy_;
  std::string subject_;
  ssh_channel channel_ = nullptr;  // owned by the session
  ssh_event event_ = nullptr;
  ssh_channel_callbacks_struct callbacks_{};

  std::string inbox_;
  std::size_t inbox_taken_ = 0;
  TextTail stderr_;
  int exit_status_ = -1;
  bool eof_seen_ = false;
  bool close_seen_ = false;
  std::optional<Error> error_;

  asio::const_buffer outgoing_;
  bool eof_wanted_ = false;
  bool eof_sent_ = false;
  bool closing_ = false;
  bool ended_ = false;  // the pump has ended; there is no more input

  Event wake_, readable_, written_;
  std::array<Watch, 2> watches_;
  TaskGroup tasks_;
};

}  // namespace drun::transport
