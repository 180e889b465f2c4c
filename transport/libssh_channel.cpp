#include "transport/libssh_channel.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error_id.h"

namespace drun::transport {
namespace {

constexpr std::size_t kWriteChunk = 64 * 1024;  // maximum that waits inside libssh
constexpr int kMaxRounds = 64;                  // of libssh's loop, before other coroutines run

int signal_number(std::string_view name) {
  struct Named {
    std::string_view name;
    int number;
  };
  static constexpr Named kSignals[] = {{"ABRT", SIGABRT}, {"ALRM", SIGALRM}, {"FPE", SIGFPE},   {"HUP", SIGHUP},
                                       {"ILL", SIGILL},   {"INT", SIGINT},   {"KILL", SIGKILL}, {"PIPE", SIGPIPE},
                                       {"QUIT", SIGQUIT}, {"SEGV", SIGSEGV}, {"TERM", SIGTERM}, {"USR1", SIGUSR1},
                                       {"USR2", SIGUSR2}};
  for (const auto& known : kSignals) {
    if (known.name == name) return known.number;
  }
  return 0;
}

}  // namespace

LibsshChannel::LibsshChannel(asio::io_context& io, std::unique_ptr<LibsshSession> session, std::unique_ptr<Proxy> proxy,
                             std::string subject)
    : session_(std::move(session)),
      proxy_(std::move(proxy)),
      subject_(std::move(subject)),
      wake_(io.get_executor()),
      readable_(io.get_executor()),
      written_(io.get_executor()),
      watches_{Watch(io.get_executor()), Watch(io.get_executor())},
      tasks_(io.get_executor()) {}

LibsshChannel::~LibsshChannel() {
  if (event_ != nullptr) {
    ssh_event_remove_session(event_, session_->raw());
    ssh_event_free(event_);
  }
}

Task<Result<void>> LibsshChannel::start(std::string command) {
  channel_ = ssh_channel_new(session_->raw());
  if (channel_ == nullptr)
    co_return fail(Error(Errc::kUnreachable, subject_, "exec: " + session_->error_text()).with_id(error_id::kExec));
  auto open_step = [this] { return ssh_channel_open_session(channel_); };
  auto opened = co_await session_->until_done(std::move(open_step), SSH_AGAIN);
  if (!opened || *opened != SSH_OK) {
    co_return fail(
        Error(Errc::kUnreachable, subject_, "exec: no channel: " + session_->error_text()).with_id(error_id::kExec));
  }
  set_callbacks();
  auto exec_step = [this, command] { return ssh_channel_request_exec(channel_, command.c_str()); };
  auto started = co_await session_->until_done(std::move(exec_step), SSH_AGAIN);
  if (!started || *started != SSH_OK) {
    co_return fail(Error(Errc::kUnreachable, subject_, "exec: command refused: " + session_->error_text())
                       .with_id(error_id::kExec));
  }
  event_ = ssh_event_new();
  if (event_ == nullptr || ssh_event_add_session(event_, session_->raw()) != SSH_OK) {
    co_return fail(Errc::kInternal, subject_, "exec: ssh_event: out of memory");
  }
  tasks_.spawn(watch(kRead));
  tasks_.spawn(watch(kWrite));
  tasks_.spawn(pump());
  co_return Result<void>{};
}

void LibsshChannel::set_callbacks() {
  callbacks_.userdata = this;
  callbacks_.channel_data_function = on_data;
  callbacks_.channel_eof_function = on_eof;
  callbacks_.channel_close_function = on_close;
  callbacks_.channel_exit_status_function = on_exit_status;
  callbacks_.channel_exit_signal_function = on_exit_signal;
  ssh_callbacks_init(&callbacks_);
  ssh_set_channel_callbacks(channel_, &callbacks_);
}

int LibsshChannel::on_data(ssh_session, ssh_channel, void* data, uint32_t len, int is_stderr, void* self) {
  auto* channel = static_cast<LibsshChannel*>(self);
  const std::string_view bytes(static_cast<const char*>(data), len);
  if (is_stderr != 0) {
    channel->stderr_.append(bytes);
  } else {
    channel->inbox_.append(bytes);
    channel->readable_.notify();
  }
  return static_cast<int>(len);
}

void LibsshChannel::on_eof(ssh_session, ssh_channel, void* self) {
  static_cast<LibsshChannel*>(self)->eof_seen_ = true;
}

void LibsshChannel::on_close(ssh_session, ssh_channel, void* self) {
  static_cast<LibsshChannel*>(self)->close_seen_ = true;
}

void LibsshChannel::on_exit_status(ssh_session, ssh_channel, int status, void* self) {
  static_cast<LibsshChannel*>(self)->exit_status_ = status;
}

void LibsshChannel::on_exit_signal(ssh_session, ssh_channel, const char* signal, int, const char*, const char*,
                                   void* self) {
  static_cast<LibsshChannel*>(self)->exit_status_ = 128 + signal_number(signal);
}

Task<Result<std::size_t>> LibsshChannel::read_some(asio::mutable_buffer buffer) {
  while (!closing_ && inbox_.empty() && !at_end()) co_await readable_.wait_and_reset();
  if (closing_) co_return fail(Errc::kCanceled, subject_, "read: closed");
  if (!inbox_.empty()) {
    const std::size_t n = std::min(buffer.size(), inbox_.size() - inbox_taken_);
    std::memcpy(buffer.data(), inbox_.data() + inbox_taken_, n);
    const bool was_full = inbox_.size() >= kInboxLimit;
    inbox_taken_ += n;
    if (inbox_taken_ == inbox_.size()) {
      inbox_.clear();
      inbox_taken_ = 0;
    }
    if (was_full && inbox_.empty()) wake_.notify();
    co_return n;
  }
  if (error_) co_return fail(*error_);
  co_return std::size_t{0};
}

Task<Result<void>> LibsshChannel::write(asio::const_buffer buffer) {
  if (eof_wanted_) co_return fail(Errc::kClosed, subject_, "write: after close_write");
  outgoing_ = buffer;
  wake_.notify();
  while (!closing_ && !ended_ && outgoing_.size() > 0) co_await written_.wait_and_reset();
  const bool all = outgoing_.size() == 0;
  outgoing_ = {};
  if (closing_) co_return fail(Errc::kCanceled, subject_, "write: closed");
  if (all) co_return Result<void>{};
  if (error_) co_return fail(*error_);
  co_return fail(Errc::kClosed, subject_, "write: the remote command has ended");
}

void LibsshChannel::close_write() {
  eof_wanted_ = true;
  wake_.notify();
}

void LibsshChannel::close() {
  closing_ = true;
  wake_.notify();
  readable_.notify();
  written_.notify();
  if (tasks_.running() == 0 && proxy_) proxy_->end();  // start() has failed, so no pump will end it
}

Task<void> LibsshChannel::join() {
  co_await tasks_.join();
  if (proxy_) co_await proxy_->join();
}

// Lets libssh read, decrypt, call back and flush. False if the connection is gone.
bool LibsshChannel::poll_libssh() {
  for (int round = 0; round < kMaxRounds && inbox_.size() < kInboxLimit && !close_seen_; ++round) {
    const int answer = ssh_event_dopoll(event_, 0);
    if (answer == SSH_AGAIN) return true;
    if (answer == SSH_ERROR || !session_->alive()) return close_seen_;
    if (round + 1 == kMaxRounds) wake_.notify();  // there is more to do
  }
  return true;
}

// Passes outgoing bytes to libssh while the peer's window and the socket accept them. False if the connection is gone.
bool LibsshChannel::feed_libssh() {
  while (outgoing_.size() > 0 && (ssh_get_poll_flags(session_->raw()) & SSH_WRITE_PENDING) == 0) {
    const std::size_t window = ssh_channel_window_size(channel_);
    const std::size_t n = std::min({outgoing_.size(), window, kWriteChunk});
    if (n == 0) return true;
    const int taken = ssh_channel_write(channel_, outgoing_.data(), static_cast<std::uint32_t>(n));
    if (taken < 0 || !session_->alive()) return false;
    outgoing_ += static_cast<std::size_t>(taken);
    if (outgoing_.size() == 0) written_.notify();
    if (taken == 0) return true;
  }
  if (eof_wanted_ && !eof_sent_ && outgoing_.size() == 0) {
    eof_sent_ = true;
    if (ssh_channel_send_eof(channel_) == SSH_ERROR && !session_->alive()) return false;
  }
  return true;
}

Task<void> LibsshChannel::pump() {
  while (!closing_ && !close_seen_) {
    const bool full = inbox_.size() >= kInboxLimit;
    if (!full && !poll_libssh()) {
      error_ = lost(session_->error_text());
      break;
    }
    if (closing_ || close_seen_) break;
    if (!eof_sent_ && !feed_libssh()) {
      if (!close_seen_) error_ = lost(session_->error_text());
      break;
    }
    if (at_end()) readable_.notify();
    if (inbox_.size() < kInboxLimit) arm(kRead);
    if ((ssh_get_poll_flags(session_->raw()) & SSH_WRITE_PENDING) != 0) arm(kWrite);
    session_->quick_ack();
    co_await wake_.wait_and_reset();
  }
  finish();
}

void LibsshChannel::finish() {
  ended_ = true;
  ssh_event_remove_session(event_, session_->raw());
  ssh_event_free(event_);
  event_ = nullptr;
  ssh_remove_channel_callbacks(channel_, &callbacks_);
  session_->abort();
  for (auto& watch : watches_) watch.arm.notify();
  session_->disconnect();
  if (proxy_) proxy_->end();
  readable_.notify();
  written_.notify();
}

void LibsshChannel::arm(Direction direction) {
  Watch& watch = watches_[direction];
  if (watch.armed) return;
  watch.armed = true;
  watch.arm.notify();
}

Task<void> LibsshChannel::watch(Direction direction) {
  using Descriptor = asio::posix::stream_descriptor;
  const auto wanted = direction == kRead ? Descriptor::wait_read : Descriptor::wait_write;
  for (;;) {
    co_await watches_[direction].arm.wait_and_reset();
    if (ended_) co_return;
    co_await session_->watched().async_wait(wanted, as_result);
    if (ended_) co_return;
    watches_[direction].armed = false;
    wake_.notify();
  }
}

Error LibsshChannel::lost(const std::string& why) const {
  std::string cause = "connection lost: " + why;
  if (const auto words = proxy_ ? proxy_->words() : std::vector<std::string>(); !words.empty()) {
    cause += " (" + words.back() + ")";
  }
  return Error(Errc::kIo, subject_, std::move(cause)).with_id(error_id::kHostLost);
}

}  // namespace drun::transport
