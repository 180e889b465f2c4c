// Common code of `drun bench` and `drun clean`: all their arguments are options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "cli/printer.h"

namespace CLI {
class App;
}

namespace drun::cli {

struct Subcommand {
  std::string help;  // not empty: only print it
  log::Level log_level = log::Level::kOff;
  std::string log_file;
};

// Returns false if the help text was asked for. `name`: "drun clean".
Result<bool> parse_words(CLI::App& app, const std::vector<std::string>& args, const std::string& name);

// Prints the help, or starts the log and says which hosts a batch scheduler gave. Returns an exit status if the
// command ends here, after the help or an error.
std::optional<int> begin(const Subcommand& command, const std::vector<Host>& hosts, Printer& printer);

}  // namespace drun::cli
