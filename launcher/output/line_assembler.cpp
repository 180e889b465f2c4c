#include "launcher/output/line_assembler.h"

#include <cstring>

namespace drun::launcher {

namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// At most `limit`, and not inside a UTF-8 character. Bytes that are not UTF-8 are cut anywhere.
std::size_t cut_between_characters(std::string_view bytes, std::size_t limit) {
  std::size_t at = limit;
  while (at > limit - 3 && continues_character(bytes[at])) --at;
  const bool is_lead = (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0xC0;
  return is_lead ? at : limit;
}

}  // namespace

// The search for the end begins at `first`.
std::size_t LineAssembler::line_length(std::string_view bytes, std::size_t first) {
  if (first >= bytes.size()) return 0;
  const auto at = [&](char c, std::size_t end) {
    const void* const found = std::memchr(bytes.data() + first, c, end - first);
    return found == nullptr ? std::string_view::npos
                            : static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
  };
  const std::size_t newline = at('\n', bytes.size());
  const std::size_t end = newline != std::string_view::npos ? newline : bytes.size();
  const std::size_t carriage = at('\r', end);
  if (carriage != std::string_view::npos) {
    if (carriage + 1 < end) return carriage + 1;
    if (carriage + 1 == bytes.size()) return 0;  // "\r\n" may be arriving in two parts
  }
  return newline != std::string_view::npos ? newline + 1 : 0;
}

std::size_t LineAssembler::piece_length(std::string_view bytes) const {
  const std::size_t first = is_inside_ ? 0 : std::min(bytes.find_first_not_of('\r'), bytes.size());
  const std::size_t n = line_length(bytes, first);
  if (std::max(n, n == 0 ? bytes.size() : 0) <= kLimit) return n;
  return cut_between_characters(bytes, kLimit);
}

std::size_t LineAssembler::next_of_rest(std::string_view& bytes) {
  const std::size_t room = kLimit + 1 - rest_.size();
  std::size_t n = line_length(bytes, 0);
  if (rest_.back() == '\r') n = 1;
  n = std::min({n == 0 ? bytes.size() : n, room, bytes.size()});
  rest_.append(bytes.substr(0, n));
  bytes.remove_prefix(n);
  return piece_length(rest_);
}

void LineAssembler::drop_from_rest(std::size_t n) {
  if (n < rest_.size()) {
    rest_.erase(0, n);
  } else if (rest_.capacity() > 4096) {
    rest_ = std::string();  // few of many ranks have long lines at a time
  } else {
    rest_.clear();
  }
}

void TaggedOutput::put(int owner, std::string_view tag, std::string_view piece) {
  if (piece.empty()) return;
  if (open_owner_ != owner) {
    if (open_owner_ >= 0) out_ += '\n';
    out_ += tag;
  }
  out_ += piece;
  const char last = piece.back();
  open_owner_ = last == '\n' || last == '\r' ? -1 : owner;
}

void TaggedOutput::put_raw(int owner, std::string_view bytes) {
  if (bytes.empty()) return;
  out_ += bytes;
  open_owner_ = bytes.back() == '\n' ? -1 : owner;
}

void TaggedOutput::close_line(int owner) {
  if (open_owner_ != owner) return;
  out_ += '\n';
  open_owner_ = -1;
}

}  // namespace drun::launcher
