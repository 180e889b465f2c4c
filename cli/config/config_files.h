// The drun.toml files of a call of drun: the one of --config, or those that are found. docs/configuration.md.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/cli11.h"
#include "cli/config/config_apply.h"
#include "cli/config/config_sources.h"
#include "cli/host_options.h"
#include "launcher/plan/worker_env.h"

namespace drun::cli {

inline constexpr const char* kConfigName = "drun.toml";
// toml++ recurses into each part of a dotted key: 64 KiB of dots fit the stack with room to spare, 1 MiB does not.
inline constexpr std::size_t kMaxConfigBytes = 64u << 10;

// The user's own file; "" = none.
std::string user_config(const launcher::Environment& own_env);

// The file of --config. Errors are Errc::kUsage and name it.
Result<ConfigFile> read_named_config(const std::string& path);

struct ConfigPlaces {
  std::string working_directory;  // absolute
  std::string user_file;          // "" = none
  uid_t user = 0;                 // the caller
};

// The files that exist, nearest first: drun.toml in the working directory and, in a git work tree, in the directories
// above it up to its top; then the user's. A file that another user could have written is an error.
Result<std::vector<ConfigFile>> find_configs(const ConfigPlaces& places);

// The names of the groups of hosts in the file of --config (`named`), or in the files that are found if that is "".
// Files with an error have none.
std::vector<std::string> group_names(const std::string& named, const launcher::Environment& own_env);

struct ConfigUse {
  ConfigOrigins origins;
  ConfigSources sources;

  Error explain(Error error) const { return origins.explain(std::move(error)); }
};

// Reads the files and applies them to `app`, which has parsed the command line into `raw`. `command` as for
// apply_config().
Result<ConfigUse> read_config(CLI::App& app, const std::string& command, RawHostOptions& raw,
                              const launcher::Environment& own_env);

}  // namespace drun::cli
