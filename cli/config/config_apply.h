// Gives options the values of drun.toml files that the command line has not given.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/cli11.h"
#include "cli/config/config_text.h"
#include "cli/config/host_groups.h"

namespace drun::cli {

struct ConfigFile {
  std::string name;            // for people
  std::string folder;          // absolute; relative paths in the file count from it
  bool is_of_project = false;  // found beside the user's files: ConfigScope::kOwnFile is refused
  std::vector<ConfigEntry> entries;
};

// The origins of values that came from files: "--grace" -> "drun.toml:3: 'grace'", for every name of an option.
class ConfigOrigins {
 public:
  void add(const CLI::Option& option, const ConfigFile& file, const ConfigEntry& entry);
  // An error about the value of an option names the file and the key in place of the option, if it came from there.
  Error explain(Error error) const;
  bool has(const std::string& option) const { return by_name_.count(option) > 0; }
  // "drun.toml:3: 'grace'" by option.
  std::map<std::string, std::string> places() const;
  // ConfigFile::name; "" if the value came from no file.
  std::string file_of(const std::string& option) const;

 private:
  struct Origin {
    std::string key, file;
    int line = 0;
  };
  static std::string place_of(const Origin& origin);

  std::map<std::string, Origin> by_name_;
};

struct AppliedConfig {
  ConfigOrigins origins;
  std::vector<HostGroup> groups;  // each name once
};

// `app` has parsed the command line. `nearest_first`: of two files with the same key, the first one counts. `command`
// is "run", "bench", ... `home`: for paths that begin with "~/"; "" = unknown. Every entry of every file is checked.
// Errors are Errc::kUsage and name the file, the line and the key.
Result<AppliedConfig> apply_config(CLI::App& app, const std::string& command, const std::string& home,
                                   const std::vector<ConfigFile>& nearest_first);

}  // namespace drun::cli
