#include "runtime/src/backend/tcp/peer_handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/bytes.h"
#include "runtime/src/backend/tcp/socket.h"

namespace drun::runtime {
namespace {

constexpr std::size_t kMaxIdentity = 4096;  // sealed bytes; a job id is short
constexpr std::size_t kLengthBytes = 4;

std::string encode(const PeerIdentity& identity) {
  ByteWriter out;
  out.str(identity.job_id);
  out.i32(identity.epoch);
  out.i32(identity.from);
  out.i32(identity.to);
  out.i32(identity.stream);
  return out.take();
}

}  // namespace

PeerHandshake PeerHandshake::dial(Fd fd, const rendezvous::JobKey& key, PeerIdentity own) {
  PeerHandshake result(std::move(fd), std::move(own));
  result.client_.emplace(key, rendezvous::Purpose::kPeer);
  result.expect(Phase::kConnecting, rendezvous::kServerHelloBytes);
  return result;
}

PeerHandshake PeerHandshake::accept(Fd fd, const rendezvous::JobKey& key, PeerIdentity own) {
  PeerHandshake result(std::move(fd), std::move(own));
  result.server_.emplace(key, rendezvous::Purpose::kPeer);
  result.expect(Phase::kHello, rendezvous::kClientHelloBytes);
  return result;
}

void PeerHandshake::expect(Phase phase, std::size_t n_bytes) {
  phase_ = phase;
  input_.clear();
  expected_ = n_bytes;
}

Result<bool> PeerHandshake::step() {
  if (phase_ == Phase::kConnecting) {
    pollfd writable{fd_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) == 0) return false;
    if (auto connected = connect_result(fd_.get()); !connected) return fail(connected.error());
    output_ = client_->hello();
    phase_ = Phase::kHello;
  }
  for (;;) {
    auto flushed = flush();
    if (!flushed) return fail(flushed.error());
    if (!*flushed) return false;
    if (phase_ == Phase::kDone) return true;
    auto filled = fill();
    if (!filled) return fail(filled.error());
    if (!*filled) return false;
    if (auto taken = take_in(); !taken) return fail(taken.error());
  }
}

Result<bool> PeerHandshake::flush() {
  while (!output_.empty()) {
    const ssize_t n = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      output_.erase(0, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      return fail(errno_error(errno, "send"));
    }
  }
  return true;
}

// Never reads past the expected bytes: those behind them belong to the collectives.
Result<bool> PeerHandshake::fill() {
  while (input_.size() < expected_) {
    std::array<char, kMaxIdentity> buffer;
    const ssize_t n = ::recv(fd_.get(), buffer.data(), std::min(buffer.size(), expected_ - input_.size()), 0);
    if (n > 0) {
      input_.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0) {
      return fail(Errc::kClosed, "closed by the other side during the handshake");
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      return fail(errno_error(errno, "receive"));
    }
  }
  return true;
}

Result<void> PeerHandshake::take_in() {
  switch (phase_) {
    case Phase::kHello:
      return take_in_hello();
    case Phase::kProof: {
      if (auto verified = server_->verify(input_); !verified) return fail(verified.error());
      streams_ = server_->streams();
      expect(Phase::kIdentityLength, kLengthBytes);
      return {};
    }
    case Phase::kIdentityLength: {
      auto n_bytes = rendezvous::FrameCipher::body_size(input_);
      if (!n_bytes) return fail(n_bytes.error());
      if (*n_bytes > kMaxIdentity) return fail(Errc::kProtocol, "identity of " + std::to_string(*n_bytes) + " bytes");
      expect(Phase::kIdentity, *n_bytes);
      return {};
    }
    case Phase::kIdentity:
      return take_in_identity();
    case Phase::kConnecting:
    case Phase::kDone:
      break;
  }
  return fail(Errc::kInternal, "handshake in the wrong phase");
}

Result<void> PeerHandshake::take_in_hello() {
  if (server_) {
    auto reply = server_->answer(input_);
    if (!reply) return fail(reply.error());
    output_ = std::move(*reply);
    expect(Phase::kProof, rendezvous::kClientProofBytes);
    return {};
  }
  auto proof = client_->finish(input_);
  if (!proof) return fail(proof.error());
  output_ = std::move(*proof);
  streams_ = client_->streams();
  send_identity();
  expect(Phase::kIdentityLength, kLengthBytes);
  return {};
}

void PeerHandshake::send_identity() { output_ += streams_.send.seal(encode(own_)); }

Result<void> PeerHandshake::take_in_identity() {
  auto plain = streams_.receive.open(input_);
  if (!plain) return fail(plain.error());
  ByteReader in(*plain);
  PeerIdentity theirs;
  theirs.job_id = in.str();
  theirs.epoch = in.i32();
  theirs.from = in.i32();
  theirs.to = in.i32();
  theirs.stream = in.i32();
  if (!in.done()) return fail(Errc::kProtocol, "malformed identity");
  if (theirs.job_id != own_.job_id || theirs.epoch != own_.epoch) {
    return fail(Errc::kProtocol, "a rank of another job or of another epoch");
  }
  if (theirs.to != own_.from || (client_ && theirs.from != own_.to)) {
    return fail(Errc::kProtocol, "rank " + std::to_string(theirs.from) + " looking for rank " +
                                     std::to_string(theirs.to) + " met rank " + std::to_string(own_.from));
  }
  own_.to = theirs.from;
  if (server_) own_.stream = theirs.stream;
  if (server_) send_identity();
  expect(Phase::kDone, 0);
  return {};
}

}  // namespace drun::runtime
