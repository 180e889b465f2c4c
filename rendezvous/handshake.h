// Mutual proof of the job's key on a new connection, and the frame encryption that follows. Pure state machines on
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
inline constexpr std::uint16_t kProtocolVersion = 3;
inline constexpr std::size_t kMaxFrame = 4u << 20;  // plaintext bytes of one frame

using JobKey = std::array<unsigned char, kKeyBytes>;

JobKey make_job_key();                                  // random
Result<JobKey> job_key_from_hex(std::string_view hex);  // 64 hex digits
std::string job_key_to_hex(const JobKey& key);

// The key and the nonce of one frame.
struct FrameKey {
  std::array<unsigned char, 32> key{};
  std::array<unsigned char, 24> nonce{};
};

// One direction of an established connection.
class FrameCipher {
 public:
  FrameCipher() = default;
  explicit FrameCipher(const std::array<unsigned char, 32>& key) : key_(key) {}
  // Length prefix and ciphertext, ready to be written, in this order. Precondition: plain.size() <= kMaxFrame.
  std::string seal(std::string_view plain);
  // For a frame that the caller seals (frame_sealer.h): takes its place in the order.
  FrameKey next();
  // Decodes a 4-byte prefix: the number of ciphertext bytes that follow; kProtocol if out of bounds.
  static Result<std::size_t> body_size(std::string_view prefix);
  // Decrypts the ciphertext of one frame; kAuth if it was not sealed with this key at this position.
  Result<std::string> open(std::string_view body);

 private:
  std::array<unsigned char, 32> key_{};
  std::uint64_t counter_ = 0;
};

struct SecureStreams {
  FrameCipher send;
  FrameCipher receive;
};

// The purpose of a proof; a proof for one purpose is invalid for another.
enum class Purpose : std::uint8_t { kRendezvous = 1, kPeer = 2 };

// Client side: send hello(), read kServerHelloBytes, send finish() of them. The server's first sealed frame confirms
// it.
class ClientHandshake {
 public:
  ClientHandshake(const JobKey& key, Purpose purpose);
  std::string hello() const;  // kClientHelloBytes: magic, version, purpose, nonce
  // Returns kClientProofBytes. kAuth if the server's proof is wrong, kProtocol with both versions if the server
  // refused this one.
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
  // Returns nonce and proof. kProtocol for a wrong magic, purpose or version; for a version it names both.
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

// The reply that a server sends instead of its hello, before it closes, to a drun client of another version:
// kServerHelloBytes that carry the server's version, so that the client's error names both. Empty for any other hello,
// which gets no reply.
std::string version_refusal(std::string_view client_hello);

}  // namespace drun::rendezvous
