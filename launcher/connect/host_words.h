// Lines that a host's remote command printed, for drun's errors. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

inline constexpr std::size_t kShownBytes = 2000;

// The first kShownBytes, clean and by line, without blank lines and banners of "@".
std::vector<std::string> lines_of_host(std::string_view bytes);
// The same of the last kShownBytes: of stderr, where the reason comes last.
std::vector<std::string> last_lines_of_host(std::string_view bytes);

}  // namespace drun::launcher
