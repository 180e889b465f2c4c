// The meaning of each finding's code: the sections of docs/check.md, which the build puts into the program. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::cli {

// The first paragraph of the section, in one line, in Markdown: words, and `code`. "" = there is no such section.
std::string code_meaning(std::string_view code);
// All codes that have a section, in its order.
std::vector<std::string> explained_codes();

}  // namespace drun::cli
