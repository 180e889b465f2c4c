// `drun bench`: times collectives between workers, with a worker program that drun provides.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "bench/settings.h"
#include "cli/option_rows.h"
#include "cli/printer.h"
#include "cli/subcommand.h"
#include "launcher/run/job.h"

namespace drun::cli {

struct BenchCommand : Subcommand {
  std::vector<bench::Settings> settings;  // one for each collective, in the order given
  launcher::JobOptions job;               // its command is the measuring worker
};

std::vector<OptionRow> bench_rows();

// `args` without the program's name and the word `bench`. Every error is Errc::kUsage.
Result<BenchCommand> parse_bench(const std::vector<std::string>& args, const launcher::Environment& own_env);

// Parses and runs the job. Returns its exit status: 1 if a result was wrong.
int command_bench(const std::vector<std::string>& args, const launcher::Environment& own_env, Printer& printer);

}  // namespace drun::cli
