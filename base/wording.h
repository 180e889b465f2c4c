// Texts for people: lists of names and truncated texts. C++17, header only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace drun {

// "a", "a and b", "a, b and c"; beyond `limit` "a, b and 52 more", with `rest` in place of "more".
inline std::string list_some(const std::vector<std::string>& names, std::size_t limit,
                             const std::string& rest = "more") {
  if (names.empty()) return "none";
  const bool cut = names.size() > limit + 1;  // "and 1 more" is no shorter than the name
  std::vector<std::string> shown(names.begin(), cut ? names.begin() + static_cast<std::ptrdiff_t>(limit) : names.end());
  if (cut) shown.push_back(std::to_string(names.size() - limit) + " " + rest);
  if (shown.size() == 1) return shown.front();
  const std::string last = std::move(shown.back());
  shown.pop_back();
  return join(shown, ", ") + " and " + last;
}

// The first bytes of a text, at most `n_bytes`, without a partial UTF-8 character at the end.
inline std::string_view cut_text(std::string_view text, std::size_t n_bytes) {
  if (text.size() <= n_bytes) return text;
  while (n_bytes > 0 && (static_cast<unsigned char>(text[n_bytes]) & 0xc0) == 0x80) --n_bytes;
  return text.substr(0, n_bytes);
}

}  // namespace drun
