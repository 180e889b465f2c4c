// The drun.toml files of a call of drun.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "cli/config/config_apply.h"
#include "launcher/plan/worker_env.h"

namespace drun::cli {

// The file of --config. Errors are Errc::kUsage and name it.
Result<ConfigFile> read_named_config(const std::string& path);

// Reads the file of --config (`named`; "" = none) and applies it to `app`, which has parsed the command line. `command`
// as for apply_config().
Result<ConfigOrigins> read_config(CLI::App& app, const std::string& command, const std::string& named,
                                  const launcher::Environment& own_env);

}  // namespace drun::cli
