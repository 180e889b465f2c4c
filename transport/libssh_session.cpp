#include "transport/libssh_session.h"

#include <fcntl.h>
#include <libssh/callbacks.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/clean_text.h"
#include "base/error_id.h"
#include "base/text.h"

namespace drun::transport {
namespace {

// Twice as fast as libssh's default (chacha20) wherever the processor knows AES.
constexpr const char* kCiphers =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";

void drop_log(int, const char*, const char*, void*) {}

}  // namespace

Result<std::unique_ptr<LibsshSession>> LibsshSession::create(asio::io_context& io, const SshTarget& target,
                                                             const std::string& host_keys, Fd socket) {
  // Both are thread-local in libssh. A LogLevel in some config must not make it print on drun's stderr.
  ssh_set_log_level(SSH_LOG_NOLOG);
  ssh_set_log_callback(drop_log);
  const ssh_session raw = ssh_new();
  if (raw == nullptr) return fail(Errc::kInternal, "ssh_new: out of memory");
  std::unique_ptr<LibsshSession> session(new LibsshSession(io, raw));

  const char* refused = nullptr;
  const auto set = [&](ssh_options_e option, const char* name, const void* value) {
    if (refused == nullptr && ssh_options_set(raw, option, value) != SSH_OK) refused = name;
  };
  const auto set_text = [&](ssh_options_e option, const char* name, const std::string& value) {
    if (!value.empty()) set(option, name, value.c_str());
  };
  const bool no = false;
  const int port = target.port;
  set(SSH_OPTIONS_PROCESS_CONFIG, "ProcessConfig", &no);  // drun has read it
  // libssh refuses names that OpenSSH takes (a '_' in that of a host, a backslash in that of a user), and needs neither
  // here: the socket is connected, and Login names the user.
  set(SSH_OPTIONS_HOST, "HostName", "host");
  set(SSH_OPTIONS_PORT, "Port", &port);
  set(SSH_OPTIONS_USER, "User", "user");
  set(SSH_OPTIONS_KNOWNHOSTS, "UserKnownHostsFile", "/dev/null");  // HostKeyCheck checks keys
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "GlobalKnownHostsFile", "/dev/null");
  const std::string ciphers = target.ciphers.empty() ? kCiphers : target.ciphers;
  set_text(SSH_OPTIONS_CIPHERS_C_S, "Ciphers", ciphers);
  set_text(SSH_OPTIONS_CIPHERS_S_C, "Ciphers", ciphers);
  set_text(SSH_OPTIONS_HMAC_C_S, "MACs", target.macs);
  set_text(SSH_OPTIONS_HMAC_S_C, "MACs", target.macs);
  set_text(SSH_OPTIONS_KEY_EXCHANGE, "KexAlgorithms", target.kex_algorithms);
  set_text(SSH_OPTIONS_HOSTKEYS, "HostKeyAlgorithms", host_keys);
  set_text(SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES, "PubkeyAcceptedAlgorithms", target.key_algorithms);
  if (target.min_rsa_bits > 0) set(SSH_OPTIONS_RSA_MIN_SIZE, "RequiredRSASize", &target.min_rsa_bits);
  if (target.compression) set(SSH_OPTIONS_COMPRESSION, "Compression", "yes");
  if (refused != nullptr) {
    return fail(Error(Errc::kUnreachable, std::string("ssh config: ") + refused + ": " + session->error_text())
                    .with_id(error_id::kSshConfig));
  }

  Fd watched(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
  if (!watched) return fail(errno_error(errno, "dup"));
  const int fd = socket.get();
  set(SSH_OPTIONS_FD, "fd", &fd);
  if (refused != nullptr) return fail(Errc::kInternal, "ssh_options_set: " + session->error_text());
  session->given_ = socket.release();
  struct stat identity {};
  if (::fstat(session->given_, &identity) == 0) session->inode_ = identity.st_ino;
  session->watched_.assign(watched.release());
  ssh_set_blocking(raw, 0);
  return session;
}

LibsshSession::~LibsshSession() {
  disconnect();
  ssh_free(session_);
  close_given_socket();
}

// libssh 0.10 closes the socket that it was given, 0.11 does not after an error. The inode tells whether the number has
// been reused since.
void LibsshSession::close_given_socket() {
  struct stat now {};
  if (given_ < 0 || ::fstat(given_, &now) != 0 || !S_ISSOCK(now.st_mode) || now.st_ino != inode_) return;
  ::close(given_);
}

void LibsshSession::disconnect() {
  abort();
  // Sends no disconnect message: it can't arrive on a lost connection, and on a live one EOF says the same.
  ssh_silent_disconnect(session_);
}

Task<Result<void>> LibsshSession::handshake() {
  for (;;) {
    if (!watched_.is_open()) co_return fail(Errc::kCanceled, "canceled");
    const int answer = ssh_connect(session_);
    if (answer == SSH_OK) break;
    if (answer != SSH_AGAIN || ssh_get_fd(session_) < 0) co_return fail(Errc::kClosed, error_text());
    if (auto ok = set_nonblocking(ssh_get_fd(session_), true); !ok) co_return ok;  // libssh makes it blocking
    co_await wait_for_socket();
  }
  co_return set_nonblocking(ssh_get_fd(session_), true);
}

Task<void> LibsshSession::wait_for_socket() {
  using Descriptor = asio::posix::stream_descriptor;
  quick_ack();
  const bool writes = (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0;
  const auto direction = writes ? Descriptor::wait_write : Descriptor::wait_read;
  co_await watched_.async_wait(direction, as_result);
}

std::string LibsshSession::error_text() const {
  const std::string text = clean_line(trim(ssh_get_error(session_)));  // a server may have chosen parts of it
  return text.empty() ? "connection closed" : text;
}

void LibsshSession::abort() {
  boost::system::error_code ignored;
  watched_.close(ignored);
}

void LibsshSession::quick_ack() {
  if (!watched_.is_open()) return;
  const int on = 1;
  ::setsockopt(watched_.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

}  // namespace drun::transport
