// `drun clean`: shows and ends leftovers of earlier jobs on hosts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/option_rows.h"
#include "cli/printer.h"
#include "cli/subcommand.h"
#include "launcher/plan/worker_env.h"
#include "launcher/run/clean.h"

namespace drun::cli {

struct CleanCommand : Subcommand {
  launcher::CleanOptions clean;
  bool json = false;
};

std::vector<OptionRow> clean_rows();

// `own_env`: drun's. `args` without the program's name and the word `clean`. Every error is Errc::kUsage.
Result<CleanCommand> parse_clean(const std::vector<std::string>& args, const launcher::Environment& own_env = {});

// Parses, cleans, prints. Returns the exit status: 0 if nothing is left, 1 if something is, 68 if a host could not be
// reached or the output could not be written, 141 if the reader of the output is gone.
int command_clean(const std::vector<std::string>& args, Printer& printer, const launcher::Environment& own_env = {});

}  // namespace drun::cli
