#include "rendezvous/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/text.h"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kChunk = 64u << 10;
constexpr std::size_t kPrefixBytes = 4;

}  // namespace

Result<Connection> Connection::open(const std::string& address, int port, const JobKey& key,
                                    BlockingDeadline& deadline) {
  const std::string where = host_port(address, port);
  const auto failed = [&where](Error e) { return fail(std::move(e).with_subject(where)); };
  auto fd = connect_tcp(address, port, deadline);
  if (!fd) return failed(fd.error());
  ClientHandshake handshake(key, Purpose::kRendezvous);
  if (auto sent = send_all(fd->get(), handshake.hello(), deadline); !sent) {
    return failed(Error(sent.error().code == Errc::kTimeout ? Errc::kTimeout : Errc::kClosed, sent.error().cause));
  }
  const auto hello = receive_exactly(fd->get(), kServerHelloBytes, deadline);
  if (!hello) return failed(hello.error());
  const auto proof = handshake.finish(*hello);
  if (!proof) return failed(proof.error());
  if (auto sent = send_all(fd->get(), *proof, deadline); !sent) {
    return failed(Error(sent.error().code == Errc::kTimeout ? Errc::kTimeout : Errc::kClosed, sent.error().cause));
  }
  Connection out;
  out.fd_ = std::move(*fd);
  out.streams_ = handshake.streams();
  return out;
}

Result<std::size_t> Connection::send_some(std::string_view bytes) {
  for (;;) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return fail(Errc::kClosed, errno_error(errno, "send").cause);
  }
}

Result<std::optional<ServerMessage>> Connection::next_buffered() {
  const std::string_view rest = std::string_view(in_).substr(taken_);
  if (rest.size() < kPrefixBytes) return std::nullopt;
  const auto n_bytes = FrameCipher::body_size(rest.substr(0, kPrefixBytes));
  if (!n_bytes) return fail(n_bytes.error());
  if (rest.size() < kPrefixBytes + *n_bytes) return std::nullopt;
  const auto plain = streams_.receive.open(rest.substr(kPrefixBytes, *n_bytes));
  if (!plain) return fail(plain.error());
  taken_ += kPrefixBytes + *n_bytes;
  auto message = decode_server_message(*plain);
  if (!message) return fail(message.error());
  return std::optional<ServerMessage>(std::move(*message));
}

Result<std::optional<ServerMessage>> Connection::receive() {
  for (;;) {
    auto message = next_buffered();
    if (!message || message->has_value()) return message;
    in_.erase(0, taken_);
    taken_ = 0;
    const std::size_t had = in_.size();
    in_.resize(had + kChunk);
    const ssize_t n = ::recv(fd_.get(), &in_[had], kChunk, 0);
    const int err = errno;
    in_.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n > 0) continue;
    if (n == 0) return fail(Errc::kClosed, "closed by the other side");
    if (err == EAGAIN) return std::nullopt;
    if (err != EINTR) return fail(Errc::kClosed, errno_error(err, "receive").cause);
  }
}

}  // namespace drun::rendezvous
