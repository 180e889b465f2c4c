// Bracket ranges of host names: `node[01-16,20]` is node01 ... node16, node20. Private to the host parsers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace drun::launcher {

// Maximum number of hosts in one list. A larger list comes from a mistyped number.
inline constexpr std::size_t kMaxHosts = 65536;

// An error in a piece of text, with its position. The caller knows the file or option that the text comes from.
struct TextFault {
  std::size_t offset = 0;  // bytes from the start of that text
  std::string cause;
  std::string hint;
};

template <typename T>
using FaultOr = tl::expected<T, TextFault>;

// Expands `pattern` into all names it stands for, in order; a pattern without brackets is returned as is. Zero padding
// of the lower bound is kept. Several brackets multiply, with the last one varying fastest. Characters outside the
// brackets are not checked.
FaultOr<std::vector<std::string>> expand_ranges(std::string_view pattern);

}  // namespace drun::launcher
