#include "rendezvous/handshake.h"

#include <sodium.h>

#include <cassert>
#include <cstdlib>

#include "base/bytes.h"
#include "base/text.h"

namespace drun::rendezvous {
namespace {

constexpr std::string_view kMagic{"DRUN", 4};
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kPrefixBytes = 4;
constexpr std::size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;

// One label per use of the job key, so that a value from one step is useless in another.
constexpr std::string_view kServerProof = "drun server proof";
constexpr std::string_view kClientProof = "drun client proof";
constexpr std::string_view kClientToServer = "drun client to server";
constexpr std::string_view kServerToClient = "drun server to client";

using Bytes32 = std::array<unsigned char, 32>;
static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == 32);

void need_sodium() {
  static const int ready = sodium_init();
  if (ready < 0) std::abort();  // no random numbers: nothing may be sent
}

const unsigned char* octets(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }
std::string_view view(const Bytes32& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// BLAKE2b-256, keyed with the job key, over label, zero, version, purpose and both nonces.
Bytes32 derive(const JobKey& key, std::string_view label, Purpose purpose, const Bytes32& client_nonce,
               const Bytes32& server_nonce) {
  ByteWriter message;
  message.raw(label);
  message.u8(0);
  message.u16(kProtocolVersion);
  message.u8(static_cast<std::uint8_t>(purpose));
  message.raw(view(client_nonce));
  message.raw(view(server_nonce));
  Bytes32 out{};
  crypto_generichash(out.data(), out.size(), octets(message.bytes()), message.bytes().size(), key.data(), key.size());
  return out;
}

bool equal(const Bytes32& expected, std::string_view got) {
  return got.size() == expected.size() && sodium_memcmp(expected.data(), got.data(), expected.size()) == 0;
}

Bytes32 random_bytes() {
  need_sodium();
  Bytes32 out{};
  randombytes_buf(out.data(), out.size());
  return out;
}

Bytes32 take32(std::string_view s) {
  Bytes32 out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(s[i]);
  return out;
}

using AeadNonce = std::array<unsigned char, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES>;
AeadNonce aead_nonce(std::uint64_t counter) {
  AeadNonce out{};
  for (std::size_t i = 0; i < 8; ++i) out[7 - i] = static_cast<unsigned char>(counter >> (8 * i));
  return out;
}

std::string prefix_of(std::size_t body_bytes) {
  ByteWriter prefix;
  prefix.u32(static_cast<std::uint32_t>(body_bytes));
  return prefix.take();
}

std::string version_text(std::uint16_t theirs) {
  return "protocol version " + std::to_string(theirs) + ", this side speaks " + std::to_string(kProtocolVersion) +
         "; drun and libdrun must be of one release";
}

}  // namespace

JobKey make_job_key() { return random_bytes(); }

Result<JobKey> job_key_from_hex(std::string_view hex) {
  need_sodium();
  JobKey key{};
  std::size_t n_bytes = 0;
  if (hex.size() != 2 * kKeyBytes ||
      sodium_hex2bin(key.data(), key.size(), hex.data(), hex.size(), nullptr, &n_bytes, nullptr) != 0 ||
      n_bytes != kKeyBytes) {
    return fail(Errc::kProtocol, "the job key must be 64 hexadecimal digits");
  }
  return key;
}

std::string job_key_to_hex(const JobKey& key) { return hex(view(key)); }

std::string FrameCipher::seal(std::string_view plain) {
  assert(plain.size() <= kMaxFrame);
  const std::string prefix = prefix_of(plain.size() + kTagBytes);
  const AeadNonce nonce = aead_nonce(counter_++);
  std::string out(kPrefixBytes + plain.size() + kTagBytes, '\0');
  out.replace(0, kPrefixBytes, prefix);
  auto* body = reinterpret_cast<unsigned char*>(&out[kPrefixBytes]);
  crypto_aead_xchacha20poly1305_ietf_encrypt(body, nullptr, octets(plain), plain.size(), octets(prefix), prefix.size(),
                                             nullptr, nonce.data(), key_.data());
  return out;
}

FrameKey FrameCipher::next() { return {key_, aead_nonce(counter_++)}; }

Result<std::size_t> FrameCipher::body_size(std::string_view prefix) {
  ByteReader reader(prefix);
  const std::size_t n = reader.u32();
  if (!reader.done()) return fail(Errc::kProtocol, "a frame's length must be 4 bytes");
  if (n < kTagBytes || n > kMaxFrame + kTagBytes) {
    return fail(Errc::kProtocol, "a frame of " + std::to_string(n) + " bytes is out of bounds");
  }
  return n;
}

Result<std::string> FrameCipher::open(std::string_view body) {
  if (body.size() < kTagBytes || body.size() > kMaxFrame + kTagBytes) {
    return fail(Errc::kProtocol, "a frame of " + std::to_string(body.size()) + " bytes is out of bounds");
  }
  const std::string prefix = prefix_of(body.size());
  const AeadNonce nonce = aead_nonce(counter_);
  std::string plain(body.size() - kTagBytes, '\0');
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(reinterpret_cast<unsigned char*>(plain.data()), nullptr, nullptr,
                                                 octets(body), body.size(), octets(prefix), prefix.size(), nonce.data(),
                                                 key_.data()) != 0) {
    return fail(Errc::kAuth, "a frame was not sealed with this job's key at this position");
  }
  ++counter_;
  return plain;
}

ClientHandshake::ClientHandshake(const JobKey& key, Purpose purpose)
    : key_(key), purpose_(purpose), nonce_(random_bytes()) {}

std::string ClientHandshake::hello() const {
  ByteWriter out;
  out.raw(kMagic);
  out.u16(kProtocolVersion);
  out.u8(static_cast<std::uint8_t>(purpose_));
  out.u8(0);
  out.raw(view(nonce_));
  return out.take();
}

Result<std::string> ClientHandshake::finish(std::string_view server_hello) {
  if (server_hello.size() != kServerHelloBytes) return fail(Errc::kProtocol, "the server's hello has the wrong size");
  server_nonce_ = take32(server_hello.substr(0, kNonceBytes));
  const Bytes32 expected = derive(key_, kServerProof, purpose_, nonce_, server_nonce_);
  if (!equal(expected, server_hello.substr(kNonceBytes))) {
    ByteReader refusal(server_hello);
    const bool drun = refusal.raw(kMagic.size()) == kMagic;
    const std::uint16_t version = refusal.u16();
    const bool rest_is_zero = refusal.raw(refusal.left()).find_first_not_of('\0') == std::string_view::npos;
    if (drun && rest_is_zero) return fail(Errc::kProtocol, "the server speaks " + version_text(version));
    return fail(Errc::kAuth, "the server could not prove this job's key");
  }
  return std::string(view(derive(key_, kClientProof, purpose_, nonce_, server_nonce_)));
}

SecureStreams ClientHandshake::streams() const {
  return {FrameCipher(derive(key_, kClientToServer, purpose_, nonce_, server_nonce_)),
          FrameCipher(derive(key_, kServerToClient, purpose_, nonce_, server_nonce_))};
}

ServerHandshake::ServerHandshake(const JobKey& key, Purpose purpose)
    : key_(key), purpose_(purpose), nonce_(random_bytes()) {}

Result<std::string> ServerHandshake::answer(std::string_view client_hello) {
  if (client_hello.size() != kClientHelloBytes) return fail(Errc::kProtocol, "the client's hello has the wrong size");
  ByteReader hello(client_hello);
  if (hello.raw(kMagic.size()) != kMagic) return fail(Errc::kProtocol, "not a drun client");
  const std::uint16_t version = hello.u16();
  if (version != kProtocolVersion) return fail(Errc::kProtocol, "the client speaks " + version_text(version));
  const std::uint8_t purpose = hello.u8();
  if (purpose != static_cast<std::uint8_t>(purpose_) || hello.u8() != 0) {
    return fail(Errc::kProtocol, "the client came for another purpose");
  }
  client_nonce_ = take32(hello.raw(kNonceBytes));
  std::string out(view(nonce_));
  out += view(derive(key_, kServerProof, purpose_, client_nonce_, nonce_));
  return out;
}

Result<void> ServerHandshake::verify(std::string_view client_proof) {
  const Bytes32 expected = derive(key_, kClientProof, purpose_, client_nonce_, nonce_);
  if (!equal(expected, client_proof)) return fail(Errc::kAuth, "the client could not prove this job's key");
  return {};
}

SecureStreams ServerHandshake::streams() const {
  return {FrameCipher(derive(key_, kServerToClient, purpose_, client_nonce_, nonce_)),
          FrameCipher(derive(key_, kClientToServer, purpose_, client_nonce_, nonce_))};
}

std::string version_refusal(std::string_view client_hello) {
  ByteReader hello(client_hello);
  if (client_hello.size() != kClientHelloBytes || hello.raw(kMagic.size()) != kMagic) return {};
  if (hello.u16() == kProtocolVersion) return {};
  ByteWriter out;
  out.raw(kMagic);
  out.u16(kProtocolVersion);
  out.raw(std::string(kServerHelloBytes - out.bytes().size(), '\0'));
  return out.take();
}

}  // namespace drun::rendezvous
