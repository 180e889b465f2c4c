// Seals one frame piece by piece, so that a frame of 4 MiB does not need a buffer of its size. The bytes are those of
// FrameCipher::seal(): libsodium's AEAD takes a message only as a whole, so this uses its parts. Private to the server.
#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "rendezvous/handshake.h"

namespace drun::rendezvous {

class FrameSealer {
 public:
  static constexpr std::size_t kUnit = 64;  // bytes of a block of ChaCha20

  // `n_bytes`: of the frame's plaintext, at most kMaxFrame.
  FrameSealer(const FrameKey& frame, std::size_t n_bytes);
  // Appends the sealed bytes of the next piece to `out`; the length prefix before the first piece, and the tag after
  // the last one. A piece that is not the last has a multiple of kUnit bytes.
  void seal(std::string_view plain, std::string& out);

 private:
  void authenticate(std::string_view bytes);
  void authenticate_padding(std::size_t n_bytes);

  std::array<unsigned char, crypto_stream_chacha20_ietf_KEYBYTES> key_{};
  crypto_onetimeauth_state auth_{};
  std::size_t n_bytes_;
  std::size_t n_done_ = 0;
  bool begun_ = false;
  std::string prefix_;
};

}  // namespace drun::rendezvous
