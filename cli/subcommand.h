// Common code of the subcommands, and of `drun run` as far as it says where its options come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "cli/cli11.h"
#include "cli/config/config_sources.h"
#include "cli/printer.h"

namespace drun::cli {

struct Subcommand {
  std::string help;  // not empty: only print it
  log::Level log_level = log::Level::kOff;
  std::string log_file;
  ConfigSources config;
};

// Returns false if the help text was asked for. `name`: "drun clean".
Result<bool> parse_words(CLI::App& app, const std::vector<std::string>& args, const std::string& name);

// Notes the hosts that a batch scheduler or a drun.toml gave. Logs the files that were read.
void say_sources(const ConfigSources& config, const std::vector<Host>& hosts, Printer& printer);

// Prints the help, or starts the log and says where options and hosts come from. Returns an exit status if the command
// ends here, after the help or an error.
std::optional<int> begin(const Subcommand& command, const std::vector<Host>& hosts, Printer& printer);

// Writes to standard output, after all messages. Returns an exit status if that failed: the reason was printed then,
// unless the reader is gone.
std::optional<int> write_output(const std::string& text, Printer& printer);

}  // namespace drun::cli
