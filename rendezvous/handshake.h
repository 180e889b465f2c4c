// Proving the job's key on a new connection, both ways, and the frame encryption that follows. Pure state machines on
// bytes, used by the server (Asio) and by the blocking client. C++17, libsodium. Every byte: docs/protocol.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::rendezvous {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::size_t kMaxFrame = 4u << 20;  // plaintext bytes of one frame

using JobKey = std::array<unsigned char, kKeyBytes>;

JobKey make_job_key();                                  // random
Result<JobKey> job_key_from_hex(std::string_view hex);  // 64 hex digits
std::string job_key_to_hex(const JobKey& key);

// One direction of an established connection.
class FrameCipher {
 public:
  FrameCipher() = default;
  explicit FrameCipher(const std::array<unsigned char, 32>& key) : key_(key) {}
  // Length prefix and ciphertext, ready to be written, in this order. Precondition: plain.size() <= kMaxFrame.
  std::string seal(std::string_view plain);
  // The 4 bytes of a prefix -> how many bytes of ciphertext follow; kProtocol if out of bounds.
  static Result<std::size_t> body_size(std::string_view prefix);
  // kAuth if it was not sealed with this key at this position.
  Result<std::string> open(std::string_view body);

 private:
  std::array<unsigned char, 32> key_{};
  std::uint64_t counter_ = 0;
};

struct SecureStreams {
  FrameCipher send;
  FrameCipher receive;
};

// What the key is proved for; a proof for one purpose is worth nothing for another.
enum class Purpose : std::uint8_t { kRendezvous = 1, kPeer = 2 };

// Client side: send hello(); read kServerHelloBytes; send finish(those); the server's first sealed frame proves it.
class ClientHandshake {
 public:
  ClientHandshake(const JobKey& key, Purpose purpose);
  std::string hello() const;  // kClientHelloBytes: magic, version, purpose, nonce
  // kClientProofBytes; kAuth if the server's proof is wrong, kProtocol with both numbers for a refused version.
  Result<std::string> finish(std::string_view server_hello);
  SecureStreams streams() const;

 private:
  JobKey key_;
  Purpose purpose_;
  std::array<unsigned char, 32> nonce_{}, server_nonce_{};
};

class ServerHandshake {
 public:
  ServerHandshake(const JobKey& key, Purpose purpose);
  // kProtocol for a wrong magic or purpose, kProtocol with both numbers for a wrong version. The reply: nonce, proof.
  Result<std::string> answer(std::string_view client_hello);
  Result<void> verify(std::string_view client_proof);  // kAuth
  SecureStreams streams() const;

 private:
  JobKey key_;
  Purpose purpose_;
  std::array<unsigned char, 32> nonce_{}, client_nonce_{};
};

inline constexpr std::size_t kClientHelloBytes = 40;  // "DRUN" version:u16 purpose:u8 zero:u8 nonce:32
inline constexpr std::size_t kServerHelloBytes = 64;  // nonce:32 proof:32
inline constexpr std::size_t kClientProofBytes = 32;

// What a server sends instead of its hello to a client that says drun but another version, before it closes:
// kServerHelloBytes that carry this side's version, so that the client's error has both. Empty for any other hello: a
// stranger gets no answer.
std::string version_refusal(std::string_view client_hello);

}  // namespace drun::rendezvous
