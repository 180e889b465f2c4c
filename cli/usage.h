// Command line errors, worded alike for every command.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/argv.h"
#include "cli/cli11.h"

namespace drun::cli {

Error usage_error(const std::string& subject, const std::string& cause, const std::string& hint = "");
// Rewords CLI11's errors. `help`: the command that shows the options, for the hint.
Error parse_error(const CLI::App& app, const CLI::ParseError& e, const std::vector<std::string>& args,
                  const std::string& help);
// Refuses a misread_option() as an unknown one. nullopt: there is none.
std::optional<Error> misread_error(const CLI::App& app, const std::vector<std::string>& args,
                                   const ValueOptions& value_options, const std::string& help);
// A validator that lists the accepted values in its error, before which CLI11 puts the option, without CLI11's own list
// in the help.
CLI::Validator one_of(std::vector<std::string> words);
ValueOptions value_options(const CLI::App& app);
Result<std::chrono::milliseconds> seconds(const char* option, double value, bool zero_allowed);

}  // namespace drun::cli
