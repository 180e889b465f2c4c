// The meaning of each finding's code: the sections of docs/check.md, which the build embeds in the program. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::cli {

// The first paragraph of the section on one line, in Markdown: plain text and `code`. "" = there is no such section.
std::string code_meaning(std::string_view code);
// All codes that have a section, in the order of the sections.
std::vector<std::string> explained_codes();

}  // namespace drun::cli
