// Encoding of every message that drun sends: big-endian integers, length-prefixed strings, no padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

// Appends to a growing buffer. u8 u16 u32 u64: big-endian. str: u32 length, then the bytes.
class ByteWriter {
 public:
  void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) { integer(v, 2); }
  void u32(std::uint32_t v) { integer(v, 4); }
  void u64(std::uint64_t v) { integer(v, 8); }
  void i32(std::int32_t v) { u32(static_cast<std::uint32_t>(v)); }
  void i64(std::int64_t v) { u64(static_cast<std::uint64_t>(v)); }
  void boolean(bool v) { u8(v ? 1 : 0); }
  void raw(std::string_view bytes) { out_.append(bytes); }
  void str(std::string_view bytes);
  void strs(const std::vector<std::string>& list);  // u32 count, then each str

  const std::string& bytes() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void integer(std::uint64_t v, int n_bytes);
  std::string out_;
};

// Reads ByteWriter's output. A read past the end, or a length beyond the bytes left, makes ok() false for good and
// yields zeros and empty strings from then on: check ok() (or done()) once, at the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : in_(bytes) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(integer(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  bool boolean() { return u8() != 0; }
  std::string_view raw(std::size_t n_bytes);
  std::string str();
  std::vector<std::string> strs();
  // The count before a list whose elements take at least `min_element_bytes` each; fails if they can't fit.
  std::size_t count(std::size_t min_element_bytes = 1);

  std::size_t left() const { return in_.size(); }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }

 private:
  std::uint64_t integer(int n_bytes);
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace drun
