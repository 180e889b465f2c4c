// The text of a new drun.toml. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/cli11.h"

namespace drun::cli {

struct ConfigLine {
  std::string key;
  std::string value;                  // TOML, perhaps of several lines
  std::vector<std::string> comments;  // lines above it, without "#"
};

struct ListItem {
  std::string text;
  std::string comment;  // behind it; "" = none
};

// A string of TOML: "C:\\x" with its quotation marks.
std::string toml_string(std::string_view text);
// An array of strings: on one line, or with a line for each item if one has a comment.
std::string toml_list(const std::vector<ListItem>& items);

// The options of `app` that were given, except -H and those that stand only on the command line, as lines. `folder` is
// put before relative paths; "" leaves them as they are.
std::vector<ConfigLine> given_options(const CLI::App& app, const std::string& folder);

// `is_found`: drun will find the file in a working directory. Lines that may not stand in such a file are comments
// there, with the reason; the keys of these are added to `disabled`. `head`: comment lines at the top.
std::string config_file_text(const std::vector<std::string>& head, const std::vector<ConfigLine>& lines, bool is_found,
                             std::vector<std::string>& disabled);

}  // namespace drun::cli
