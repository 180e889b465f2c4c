// Widths of texts in terminal columns. UTF-8, with the C library's character widths; escape sequences and control
// characters have width 0. Pure. C++17.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

std::size_t text_width(std::string_view text);

// Cuts a text to at most `columns`, for one row of a terminal. Keeps all escape sequences (colors must end), replaces a
// tab by a space and drops other control characters.
std::string cut_to_width(std::string_view text, std::size_t columns);

std::string without_escapes(std::string_view text);

// Wraps a text without line ends into rows. Breaks between words and cuts words longer than a row. All rows have the
// first row's indentation.
std::vector<std::string> wrap_text(std::string_view text, std::size_t columns);

}  // namespace drun
