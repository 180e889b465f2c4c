// Short texts read word by word, which costs less than byte by byte, or than a call of memcpy; and digests over words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace drun::runtime {

template <typename T>
T read_word(const char* at) {
  T word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// One step of a digest over words.
inline std::uint64_t mixed(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
  return digest ^ digest >> 32;
}

// Calls take(word, n_bytes) for each eight bytes of the text, as they lie in memory, and for the rest of 0 to 7 bytes,
// padded with zeros.
template <typename Take>
void for_words(std::string_view text, const Take& take) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) take(read_word<std::uint64_t>(at), std::size_t{8});
  std::uint64_t rest = 0;
  unsigned shift = 0;
  if ((left & 4) != 0) {
    rest = read_word<std::uint32_t>(at);
    at += 4;
    shift = 32;
  }
  if ((left & 2) != 0) {
    rest |= std::uint64_t{read_word<std::uint16_t>(at)} << shift;
    at += 2;
    shift += 16;
  }
  if ((left & 1) != 0) rest |= std::uint64_t{static_cast<unsigned char>(*at)} << shift;
  take(rest, left);
}

}  // namespace drun::runtime
