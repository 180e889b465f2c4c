// The options of a command as data. --help, the man pages and the completions are written from these rows.
#pragma once

#include <string>
#include <vector>

#include "cli/cli11.h"

namespace drun::cli {

// Headings, in the order of the sections. CLI::Option::group() assigns an option to one. Options without one of these
// headings are the subcommand's own and come first, under "Options".
inline constexpr const char* kHosts = "Hosts";
inline constexpr const char* kNetwork = "Network";
inline constexpr const char* kEnvironment = "Environment";
inline constexpr const char* kOutput = "Input and output";
inline constexpr const char* kTimeLimits = "Time limits";
inline constexpr const char* kReports = "Reports";
inline constexpr const char* kOther = "Other options";

struct OptionRow {
  std::string heading;
  std::vector<std::string>
      names;          // as typed, short ones first: "-H", "--hosts". Spellings of other launchers are left out
  std::string value;  // the name of its value, "FILE" or "ssh|openssh"; "" = a flag
  bool optional_value = false;       // typed only as --NAME=VALUE
  std::string text;                  // what it does, and its default
  std::vector<std::string> aliases;  // further long names, which are accepted and not shown
};

// Sorted by section; the order in a section is that in which the options were added to `app`.
std::vector<OptionRow> option_rows(const CLI::App& app);
// The row with this name or alias, or null.
const OptionRow* find_row(const std::vector<OptionRow>& rows, const std::string& name);
// The words that the option accepts, "all" and "none" of "RANK|all|none"; empty if it accepts anything.
std::vector<std::string> choices(const OptionRow& row);

}  // namespace drun::cli
