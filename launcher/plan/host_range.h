// Bracket ranges of host names: `node[01-16,20]` is node01 ... node16, node20. Private to the host parsers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace drun::launcher {

// As many hosts as one list may hold: beyond it a number was mistyped.
inline constexpr std::size_t kMaxHosts = 65536;

// What is wrong with a piece of text, and where in it; the caller knows the file or option it stands in.
struct TextFault {
  std::size_t offset = 0;  // bytes from the start of that text
  std::string cause;
  std::string hint;
};

template <typename T>
using FaultOr = tl::expected<T, TextFault>;

// Every name that `pattern` stands for, in order; the pattern itself if it has no bracket. The zero padding of the
// lower bound is kept; several brackets multiply, the last one running fastest. Does not check the characters outside
// of the brackets.
FaultOr<std::vector<std::string>> expand_ranges(std::string_view pattern);

}  // namespace drun::launcher
