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

std::string with_unix_lines(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && text.substr(i, 2) == "\r\n") continue;
    out += text[i];
  }
  return out;
}

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
  for (const char c : lines) {
    if (c != kMark && static_cast<unsigned char>(c) < 0x80) {
      out += c;
    } else {
      out += kMark + hex(std::string(1, c));
    }
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
