#include "base/clean_text.h"

#include <cstddef>

namespace drun {

namespace {

constexpr unsigned kDelete = 0x7f;
constexpr unsigned kFirstC1 = 0x80, kLastC1 = 0x9f;

struct Character {
  std::size_t n_bytes = 1;
  unsigned code = 0;
  bool is_valid = false;
};

// The first character of `text`, by RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF. An invalid one
// has one byte.
Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {1, first, true};
  const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || n > text.size()) return {};
  unsigned code = first & (0x7fu >> n);
  for (std::size_t i = 1; i < n; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = (code << 6) | (next & 0x3fu);
  }
  const bool is_overlong = code < (n == 4 ? 0x10000u : n == 3 ? 0x800u : 0x80u);
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (is_overlong || is_surrogate || code > 0x10ffff) return {};
  return {n, code, true};
}

bool is_control(unsigned code) { return code < ' ' || code == kDelete || (code >= kFirstC1 && code <= kLastC1); }

std::string cleaned(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    const bool ends_line = text[0] == '\r' && text.size() > 1 && text[1] == '\n';
    if (c.code == '\n' || c.code == '\t') {
      out += keeps_lines ? text[0] : ' ';
    } else if (ends_line) {
      // The newline follows.
    } else if (!c.is_valid || is_control(c.code)) {
      out += '?';
    } else {
      out += text.substr(0, c.n_bytes);
    }
    text.remove_prefix(c.n_bytes);
  }
  return out;
}

}  // namespace

std::string clean_text(std::string_view text) { return cleaned(text, true); }

std::string clean_line(std::string_view text) { return cleaned(text, false); }

std::string escape_controls(std::string_view json) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Character c = first_character(json);
    if (c.code >= kDelete && c.code <= kLastC1) {
      out += "\\u00";
      out += digits[c.code >> 4];
      out += digits[c.code & 15];
    } else {
      out += json.substr(0, c.n_bytes);
    }
    json.remove_prefix(c.n_bytes);
  }
  return out;
}

}  // namespace drun
