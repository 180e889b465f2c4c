// Small pure helpers on text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

std::string_view trim(std::string_view s);  // spaces, tabs, CR
std::vector<std::string_view> split(std::string_view s, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string lower(std::string_view s);  // ASCII
bool starts_with(std::string_view s, std::string_view prefix);
// `s` must be digits only; nothing on overflow or other characters.
std::optional<std::uint64_t> parse_number(std::string_view s);
// Shell-style pattern with * and ?.
bool glob_match(std::string_view pattern, std::string_view s);
// The candidate nearest to `word` by edit distance, if `word` may be a misspelling of it.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);
// `s` as one word of a POSIX shell.
std::string shell_quote(std::string_view s);
// 1 -> "1 host", 2 -> "2 hosts".
std::string plural(std::size_t n, std::string_view noun);
// Sorted numbers as ranges: "0-6,8".
std::string ranges_text(const std::vector<int>& numbers);
std::string hex(std::string_view bytes);
// "[v6]:port" or "v4:port" or "name:port".
std::string host_port(std::string_view host, int port);

}  // namespace drun
