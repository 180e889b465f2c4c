// `drun clean`: shows and ends what earlier jobs left on hosts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/printer.h"
#include "cli/subcommand.h"
#include "launcher/plan/worker_env.h"
#include "launcher/run/clean.h"

namespace drun::cli {

struct CleanCommand : Subcommand {
  launcher::CleanOptions clean;
  bool json = false;
};

// `own_env`: drun's. `args` without the program's name and without the word `clean`. Every complaint is Errc::kUsage.
Result<CleanCommand> parse_clean(const std::vector<std::string>& args, const launcher::Environment& own_env = {});

// Parses, cleans, prints. Returns the exit status: 0 nothing is left, 1 something is, 68 a host could not be
// reached, or the output not be written; 141 its reader left.
int command_clean(const std::vector<std::string>& args, Printer& printer, const launcher::Environment& own_env = {});

}  // namespace drun::cli
