// Lists the options of a subcommand for --help.
#pragma once

#include <string>
#include <vector>

#include "cli/option_rows.h"

namespace drun::cli {

struct SubcommandName {
  const char* name;
  const char* summary;  // completes "drun NAME: "
};
// The subcommands with options of their own, as --help, the man pages and the completions name them.
inline constexpr SubcommandName kSubcommands[] = {
    {"bench", "how fast collectives are between hosts"},
    {"check", "what the network between hosts is like, and what is wrong"},
    {"clean", "what earlier jobs left on hosts"},
    {"init", "writes a drun.toml for hosts, after a check of them"},
};
inline constexpr const char* kSummary = "starts a distributed program on many machines with one command";

// The sections of `rows`, each with its options: names as typed, defaults at the end of the line. Ends with a newline.
std::string option_sections(const std::vector<OptionRow>& rows);

}  // namespace drun::cli
