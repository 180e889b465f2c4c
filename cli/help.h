// Lists the options of a subcommand for --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

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

// The sections of `app`, each with its options: names as typed, defaults at the end of the line. Ends with a newline.
std::string option_sections(const CLI::App& app);

}  // namespace drun::cli
