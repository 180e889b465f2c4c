// Writes docs/options.md from the option tables of all commands. Pure.
#pragma once

#include <string>

namespace drun::cli {

// The whole page, in Markdown. `drun-man-page --options-page FILE` writes it.
std::string options_page();

}  // namespace drun::cli
