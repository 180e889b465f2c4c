// Writes man pages: a page's own text, with the option table of a command in its place. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/option_rows.h"

namespace drun::cli {

// Lines of a page's source that are replaced. Without them it is a valid page, too.
inline constexpr std::string_view kSummaryMark = ".\\\" SUMMARY";
inline constexpr std::string_view kOptionsMark = ".\\\" OPTIONS";

// Text for troff's man macros: hyphens, quotes and backslashes stay what they are, and options are bold.
std::string roff(std::string_view text);
// The options in their sections.
std::string roff_options(const std::vector<OptionRow>& rows);
// `page` with `summary` behind the name "drun" or "drun-SUBCOMMAND", the options and @VERSION@ filled in.
std::string man_page(std::string_view page, const std::string& name, const std::string& summary,
                     const std::vector<OptionRow>& rows, const std::string& version);

}  // namespace drun::cli
