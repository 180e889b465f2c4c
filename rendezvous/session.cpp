#include "rendezvous/session.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/accept.h"
#include "base/log.h"
#include "rendezvous/blocking.h"

namespace drun::rendezvous {

namespace {
constexpr std::size_t kPrefixBytes = 4;
constexpr std::size_t kSealOverhead = 16;
}  // namespace

Session::Session(std::uint64_t id, Socket socket, TaskGroup& tasks)
    : id_(id), socket_(std::move(socket)), tasks_(tasks) {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  set_close_on_exec(socket_.native_handle());
  tune_tcp(socket_.native_handle());
}

Task<Result<std::string>> Session::read(std::size_t n_bytes) {
  std::string bytes(n_bytes, '\0');
  const auto buffer = asio::buffer(bytes);
  const auto [ec, n] = co_await asio::async_read(socket_, buffer, as_result);
  if (ec) co_return fail(asio_error(ec, "receive"));
  co_return bytes;
}

Task<Result<void>> Session::write(std::string bytes) {
  const auto buffer = asio::buffer(bytes);
  const auto [ec, n] = co_await asio::async_write(socket_, buffer, as_result);
  if (ec) co_return fail(asio_error(ec, "send"));
  co_return Result<void>();
}

Task<Result<void>> Session::prove(JobKey key) {
  ServerHandshake handshake(key, Purpose::kRendezvous);
  const auto hello = co_await read(kClientHelloBytes);
  if (!hello) co_return fail(hello.error());
  auto answer = handshake.answer(*hello);
  if (!answer) {
    std::string refusal = version_refusal(*hello);
    if (!refusal.empty()) co_await write(std::move(refusal));
    co_return fail(answer.error());
  }
  const auto written = co_await write(std::move(*answer));
  if (!written) co_return fail(written.error());
  const auto proof = co_await read(kClientProofBytes);
  if (!proof) co_return fail(proof.error());
  auto verified = handshake.verify(*proof);
  if (verified) streams_ = handshake.streams();
  co_return verified;
}

Task<Result<ClientMessage>> Session::receive(std::size_t limit) {
  const auto prefix = co_await read(kPrefixBytes);
  if (!prefix) co_return fail(prefix.error());
  const auto n_bytes = FrameCipher::body_size(*prefix);
  if (!n_bytes) co_return fail(n_bytes.error());
  if (*n_bytes > limit + kSealOverhead) co_return fail(Errc::kProtocol, "a frame is larger than it may be here");
  const auto body = co_await read(*n_bytes);
  if (!body) co_return fail(body.error());
  const auto plain = streams_.receive.open(*body);
  if (!plain) co_return fail(plain.error());
  co_return decode_client_message(*plain);
}

bool Session::enqueue(EncodedMessage message) {
  if (!is_open() || finishing_) return false;
  if (queued_ + message.size() > kMaxQueued) {
    log::info("rendezvous: rank " + std::to_string(rank) + " does not read what it is sent: dropped");
    close();
    return false;
  }
  queued_ += message.size();
  queue_.push_back(std::move(message));
  return true;
}

void Session::flush_later() {
  if (flushing_ || has_written_all()) return;
  flushing_ = true;
  tasks_.spawn(flush(shared_from_this()));
}

void Session::send(EncodedMessage message) {
  if (!enqueue(std::move(message))) return;
  if (flushing_ || write_some(kPiece)) flush_later();
}

void Session::send_later(const ServerMessage& message) {
  if (enqueue(encode_shared(message))) flush_later();
}

void Session::write_now() {
  if (is_open()) write_some(kMaxQueued + kPiece);
}

bool Session::seal_next() {
  sealed_.clear();
  sealed_sent_ = 0;
  if (queue_.empty()) {
    std::string().swap(sealed_);  // there are many idle connections
    return false;
  }
  const EncodedMessage& message = queue_.front();
  if (!sealer_) sealer_ = std::make_unique<FrameSealer>(streams_.send.next(), message.size());
  const std::size_t n_bytes = std::min(kPiece, message.size() - front_sealed_);
  sealer_->seal(message.piece(front_sealed_, n_bytes), sealed_);
  front_sealed_ += n_bytes;
  queued_ -= n_bytes;
  if (front_sealed_ < message.size()) return true;
  queue_.pop_front();
  sealer_.reset();
  front_sealed_ = 0;
  return true;
}

bool Session::write_some(std::size_t limit) {
  std::size_t n_written = 0;
  while (n_written < limit) {
    if (sealed_sent_ == sealed_.size() && !seal_next()) return true;
    boost::system::error_code ec;
    const std::size_t n = socket_.write_some(asio::buffer(sealed_) + sealed_sent_, ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again) return true;
    if (ec) {
      close();
      return false;
    }
    sealed_sent_ += n;
    n_written += n;
  }
  return true;
}

// No deadline of its own, because a client may be stopped in a debugger. The queue is bounded, and close() ends this.
Task<void> Session::flush(std::shared_ptr<Session> self) {
  while (self->is_open() && !self->has_written_all()) {
    const auto [ec] = co_await self->socket_.async_wait(Socket::wait_write, as_result);
    if (ec || !self->is_open() || !self->write_some(kPiece)) break;
  }
  self->flushing_ = false;
  if (self->finishing_ && self->is_open()) {
    boost::system::error_code ignored;
    self->socket_.shutdown(Socket::shutdown_send, ignored);
  }
}

Task<void> Session::finish(Deadline deadline) {
  if (!is_open()) co_return;
  finishing_ = true;
  boost::system::error_code ignored;
  if (has_written_all()) socket_.shutdown(Socket::shutdown_send, ignored);
  const DeadlineGuard guard(socket_.get_executor(), deadline, [self = shared_from_this()] { self->close(); });
  std::array<char, 4096> waste;
  const auto buffer = asio::buffer(waste);
  for (;;) {
    const auto [ec, n] = co_await socket_.async_read_some(buffer, as_result);
    if (ec) break;
  }
  close();
}

void Session::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace drun::rendezvous
