#include "rendezvous/frame_sealer.h"

#include <cassert>
#include <cstdint>

#include "base/bytes.h"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kAuthBlock = 16;

// XChaCha20 uses the first 16 bytes of the frame's nonce for the key, and ChaCha20 the last 8, which are zero.
constexpr std::array<unsigned char, crypto_stream_chacha20_ietf_NONCEBYTES> kInnerNonce{};

const unsigned char* octets(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

std::string little_endian(std::uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

}  // namespace

FrameSealer::FrameSealer(const FrameKey& frame, std::size_t n_bytes) : n_bytes_(n_bytes) {
  assert(n_bytes <= kMaxFrame);
  crypto_core_hchacha20(key_.data(), frame.nonce.data(), frame.key.data(), nullptr);
  // The first block of the stream is the authenticator's key.
  std::array<unsigned char, kUnit> block;
  crypto_stream_chacha20_ietf(block.data(), block.size(), kInnerNonce.data(), key_.data());
  crypto_onetimeauth_init(&auth_, block.data());
  sodium_memzero(block.data(), block.size());
  ByteWriter prefix;
  prefix.u32(static_cast<std::uint32_t>(n_bytes + crypto_onetimeauth_BYTES));
  prefix_ = prefix.take();
  authenticate(prefix_);
  authenticate_padding(prefix_.size());
}

void FrameSealer::authenticate(std::string_view bytes) {
  crypto_onetimeauth_update(&auth_, octets(bytes), bytes.size());
}

void FrameSealer::authenticate_padding(std::size_t n_bytes) {
  authenticate(std::string((kAuthBlock - n_bytes % kAuthBlock) % kAuthBlock, '\0'));
}

void FrameSealer::seal(std::string_view plain, std::string& out) {
  assert(n_done_ + plain.size() <= n_bytes_);
  assert(n_done_ + plain.size() == n_bytes_ || plain.size() % kUnit == 0);
  if (!begun_) out += prefix_;
  begun_ = true;
  const std::size_t at = out.size();
  out.resize(at + plain.size());
  auto* const sealed = reinterpret_cast<unsigned char*>(out.data() + at);
  const auto block = static_cast<std::uint32_t>(1 + n_done_ / kUnit);
  crypto_stream_chacha20_ietf_xor_ic(sealed, octets(plain), plain.size(), kInnerNonce.data(), block, key_.data());
  authenticate(std::string_view(out).substr(at));
  n_done_ += plain.size();
  if (n_done_ < n_bytes_) return;
  authenticate_padding(n_bytes_);
  authenticate(little_endian(prefix_.size()) + little_endian(n_bytes_));
  std::array<unsigned char, crypto_onetimeauth_BYTES> tag;
  crypto_onetimeauth_final(&auth_, tag.data());
  out.append(reinterpret_cast<const char*>(tag.data()), tag.size());
}

}  // namespace drun::rendezvous
