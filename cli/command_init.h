// `drun init`: writes a drun.toml, from a check of hosts or from horovodrun's YAML.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "check/check.h"
#include "cli/command_check.h"
#include "cli/config/config_writer.h"
#include "cli/option_rows.h"
#include "cli/printer.h"
#include "cli/subcommand.h"
#include "launcher/plan/worker_env.h"

namespace drun::cli {

struct InitCommand : Subcommand {
  check::CheckOptions check;  // without hosts, nothing is checked
  bool has_hostfile = false;  // the file goes into drun.toml, not its hosts
  bool has_networks = false;  // --network-interfaces was given
  bool force = false;
  std::string output = "drun.toml";
  bool is_found = true;                 // drun will find `output` in a working directory
  std::vector<ConfigLine> lines;        // of the command line and of the file of --from
  std::vector<std::string> last_lines;  // comments at the end: what was left out
};

std::vector<OptionRow> init_rows();

// `own_env`: drun's. `args` without the program's name and the word `init`. Every error is Errc::kUsage: an output that
// exists (without --force) or can't be written, and a file of --from that can't be read, are errors here.
Result<InitCommand> parse_init(const std::vector<std::string>& args, const launcher::Environment& own_env = {});

// Parses, checks the hosts, prints the report of the check, writes the file. Returns the status of the check if the
// hosts are not ready; without --force the file is not written then.
int command_init(const std::vector<std::string>& args, const Checker& checker, Printer& printer,
                 const launcher::Environment& own_env = {});

}  // namespace drun::cli
