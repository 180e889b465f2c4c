#include "rendezvous/frame_sealer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "rendezvous/handshake.h"

namespace drun::rendezvous {
namespace {

constexpr std::array<unsigned char, 32> kKey{1, 2, 3, 4, 5, 6, 7, 8, 250, 251, 252};

std::string plain_of(std::size_t n_bytes) {
  std::string out;
  for (std::size_t i = 0; i < n_bytes; ++i) out.push_back(static_cast<char>(i * 7 + i / 256));
  return out;
}

std::string sealed_in_pieces(FrameCipher& cipher, const std::string& plain, std::size_t piece) {
  FrameSealer sealer(cipher.next(), plain.size());
  std::string out;
  std::size_t done = 0;
  do {
    const std::size_t n = std::min(piece, plain.size() - done);
    sealer.seal(plain.substr(done, n), out);
    done += n;
  } while (done < plain.size());
  return out;
}

TEST(FrameSealer, PiecesAreTheBytesOfTheWholeFrame) {
  FrameCipher whole(kKey), pieces(kKey);
  for (std::size_t n_bytes = 0; n_bytes < 300; ++n_bytes) {
    const std::string plain = plain_of(n_bytes);
    EXPECT_EQ(sealed_in_pieces(pieces, plain, n_bytes % 2 == 0 ? 64 : 128), whole.seal(plain)) << n_bytes;
  }
}

TEST(FrameSealer, LargestFrameOpens) {
  FrameCipher sender(kKey), receiver(kKey);
  const std::string plain(kMaxFrame, 'x');
  const std::string frame = sealed_in_pieces(sender, plain, 16u << 10);
  const auto n_bytes = FrameCipher::body_size(frame.substr(0, 4));
  ASSERT_TRUE(n_bytes);
  ASSERT_EQ(frame.size(), 4 + *n_bytes);
  EXPECT_TRUE(receiver.open(frame.substr(4)).value_or("") == plain);
}

TEST(FrameSealer, MixesWithWholeFramesInOneStream) {
  FrameCipher sender(kKey), receiver(kKey);
  for (int i = 0; i < 6; ++i) {
    const std::string plain = plain_of(static_cast<std::size_t>(100 * i));
    const std::string frame = i % 2 == 0 ? sealed_in_pieces(sender, plain, 64) : sender.seal(plain);
    EXPECT_EQ(receiver.open(frame.substr(4)).value_or("does not open"), plain);
  }
}

}  // namespace
}  // namespace drun::rendezvous
