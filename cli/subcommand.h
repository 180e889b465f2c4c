// What `drun bench` and `drun clean` have in common: all their words are options.
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
  std::string help;  // not empty: only to be printed
  log::Level log_level = log::Level::kOff;
  std::string log_file;
};

// False: the help text is asked for. `name`: "drun clean".
Result<bool> parse_words(CLI::App& app, const std::vector<std::string>& args, const std::string& name);

// Prints the help, or starts the log and says which hosts a batch scheduler gave. The exit status, if that was all or
// did not work.
std::optional<int> begin(const Subcommand& command, const std::vector<Host>& hosts, Printer& printer);

}  // namespace drun::cli
