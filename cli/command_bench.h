// `drun bench`: times collectives between workers that drun brings along.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "bench/settings.h"
#include "cli/printer.h"
#include "cli/subcommand.h"
#include "launcher/run/job.h"

namespace drun::cli {

struct BenchCommand : Subcommand {
  std::vector<bench::Settings> settings;  // one for each collective, in the order given
  launcher::JobOptions job;               // whose command is the worker that measures them
};

// `args` without the program's name and without the word `bench`. Every complaint is Errc::kUsage.
Result<BenchCommand> parse_bench(const std::vector<std::string>& args, const launcher::Environment& own_env);

// Parses and runs the job. Returns its exit status: 1 if a result was wrong.
int command_bench(const std::vector<std::string>& args, const launcher::Environment& own_env, Printer& printer);

}  // namespace drun::cli
