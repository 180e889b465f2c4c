#include "base/bytes.h"

namespace drun {

void ByteWriter::integer(std::uint64_t v, int n_bytes) {
  for (int shift = 8 * (n_bytes - 1); shift >= 0; shift -= 8) out_.push_back(static_cast<char>((v >> shift) & 0xff));
}

void ByteWriter::str(std::string_view bytes) {
  u32(static_cast<std::uint32_t>(bytes.size()));
  out_.append(bytes);
}

void ByteWriter::strs(const std::vector<std::string>& list) {
  u32(static_cast<std::uint32_t>(list.size()));
  for (const auto& s : list) str(s);
}

std::uint64_t ByteReader::integer(int n_bytes) {
  const std::string_view b = raw(static_cast<std::size_t>(n_bytes));
  std::uint64_t v = 0;
  for (const char c : b) v = (v << 8) | static_cast<unsigned char>(c);
  return v;
}

std::string_view ByteReader::raw(std::size_t n_bytes) {
  if (!ok_ || n_bytes > in_.size()) {
    ok_ = false;
    in_ = {};
    return {};
  }
  const std::string_view out = in_.substr(0, n_bytes);
  in_.remove_prefix(n_bytes);
  return out;
}

std::string ByteReader::str() {
  const std::size_t n = u32();
  return std::string(raw(n));
}

std::size_t ByteReader::count(std::size_t min_element_bytes) {
  const std::size_t n = u32();
  if (!ok_ || (min_element_bytes > 0 && n > in_.size() / min_element_bytes)) {
    ok_ = false;
    in_ = {};
    return 0;
  }
  return n;
}

std::vector<std::string> ByteReader::strs() {
  std::vector<std::string> out;
  const std::size_t n = count(4);
  out.reserve(n);
  for (std::size_t i = 0; i < n; ++i) out.push_back(str());
  return out;
}

}  // namespace drun
