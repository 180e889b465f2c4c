// How many columns of a terminal a text takes. UTF-8, with the C library's widths of characters; escape sequences and
// control characters take none. Pure. C++17.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

std::size_t text_width(std::string_view text);

// The beginning of a text, at most so many columns, for one row of a terminal: all its escape sequences are kept
// (colors must end), a tab becomes a space, other control characters are left out.
std::string cut_to_width(std::string_view text, std::size_t columns);

std::string without_escapes(std::string_view text);

// The rows of a text without line ends: words go to the next row as a whole, longer ones are cut. Later rows have the
// first one's indentation.
std::vector<std::string> wrap_text(std::string_view text, std::size_t columns);

}  // namespace drun
