// The option tables of all commands, for the man pages and the completions.
#pragma once

#include <string_view>
#include <vector>

#include "cli/option_rows.h"

namespace drun::cli {

// Those of the subcommand; of `drun run` for any other word.
std::vector<OptionRow> command_rows(std::string_view subcommand);

}  // namespace drun::cli
