// The parsed command line, with the options of drun.toml files. Pure, except for reading those and the files that
// options name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "check/check_result.h"
#include "cli/config/config_sources.h"
#include "cli/config/config_writer.h"
#include "cli/option_rows.h"
#include "launcher/run/job.h"

namespace drun::cli {

enum class Action { kRun, kHelp, kVersion, kCheckBuild };

struct Options {
  Action action = Action::kRun;
  std::string help;  // for kHelp
  launcher::JobOptions job;
  std::optional<check::CheckDepth> check;  // --check
  bool dry_run = false;
  std::optional<int> explained_rank;  // --explain-env
  bool json = false;
  log::Level log_level = log::Level::kOff;
  std::string log_file;
  std::string report_file;  // absolute; "" = none
  std::string env_file;     // as typed; "" = none
  ConfigSources config;
};

std::vector<OptionRow> run_rows();

// Options of `drun run` as lines of a drun.toml.
Result<std::vector<ConfigLine>> given_run_options(const std::vector<std::string>& args);

// `args` without the program's name. Every error is Errc::kUsage.
Result<Options> parse_options(std::vector<std::string> args, const launcher::Environment& own_env);

}  // namespace drun::cli
