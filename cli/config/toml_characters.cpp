#include "cli/config/toml_characters.h"

#include <algorithm>
#include <cstddef>

#include "base/clean_text.h"
#include "base/text.h"

namespace drun::cli {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr char kMark = '~';
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::string_view kEscapedMarks[] = {"\\u007e", "\\U0000007e"};

std::string with_unix_lines(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && text.substr(i, 2) == "\r\n") continue;
    out += text[i];
  }
  return out;
}

// The characters with a replacement for each that is kMark or not ASCII.
std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != kMark && static_cast<unsigned char>(c) < 0x80) {
      out += c;
    } else {
      out += kMark + hex(std::string(1, c));
    }
  }
  return out;
}

// TOML takes the digits in both cases, but only one case of the letter before them.
bool is_escaped_mark(std::string_view token) {
  return std::any_of(std::begin(kEscapedMarks), std::end(kEscapedMarks), [token](std::string_view escaped) {
    return token.substr(0, 2) == escaped.substr(0, 2) && lower(token) == lower(escaped);
  });
}

// Divides TOML into tokens, as far as that shows which backslashes escape something. Text that is not TOML is divided
// somehow.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}
  bool has_next() const { return !rest_.empty(); }
  // An escape sequence of an escaped kMark as a whole, of any other the first two characters.
  std::string_view next() {
    if (end_.empty()) return take(opening());
    if (end_.front() == '"' && rest_.front() == '\\') return take(escape());
    return take(starts_with(rest_, end_) ? closing() : 1);
  }

 private:
  std::string_view take(std::size_t n) {
    const auto out = rest_.substr(0, n);
    rest_.remove_prefix(out.size());
    return out;
  }
  std::size_t opening() {
    for (const std::string_view mark : {"\"\"\"", "'''", "\"", "'", "#"}) {
      if (!starts_with(rest_, mark)) continue;
      end_ = mark == "#" ? "\n" : mark;
      return mark.size();
    }
    return 1;
  }
  // Up to two quotation marks before the last three are part of the string.
  std::size_t closing() {
    std::size_t n = end_.size();
    while (end_.size() == 3 && n < 5 && n < rest_.size() && rest_[n] == end_.front()) ++n;
    end_ = {};
    return n;
  }
  std::size_t escape() const {
    for (const auto escaped : kEscapedMarks) {
      if (is_escaped_mark(rest_.substr(0, escaped.size()))) return escaped.size();
    }
    return 2;
  }

  std::string_view rest_;
  std::string_view end_;  // of the string or the comment around rest_; "" = neither
};

}  // namespace

Result<std::string> toml_to_ascii(std::string_view text, const std::string& name) {
  if (starts_with(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string lines = with_unix_lines(text);
  const std::string clean = clean_text(lines);
  const auto fault = std::mismatch(lines.begin(), lines.end(), clean.begin(), clean.end()).first;
  if (fault != lines.end()) {
    const auto line = std::count(lines.begin(), fault, '\n') + 1;
    return fail(Errc::kUsage, name + ":" + std::to_string(line),
                "not valid TOML: a control character, or bytes that are not UTF-8");
  }
  std::string out;
  for (Tokens tokens(lines); tokens.has_next();) {
    const auto token = tokens.next();
    out += encoded(is_escaped_mark(token) ? std::string_view(&kMark, 1) : token);
  }
  return out;
}

std::string from_toml_ascii(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto high = i + 2 < text.size() ? kDigits.find(text[i + 1]) : std::string_view::npos;
    const auto low = i + 2 < text.size() ? kDigits.find(text[i + 2]) : std::string_view::npos;
    if (text[i] != kMark || high == std::string_view::npos || low == std::string_view::npos) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace drun::cli
