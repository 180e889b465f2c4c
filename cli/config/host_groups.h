// Named groups of hosts: `[hosts.gpu]` in a drun.toml, `-H @gpu` on the command line. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/config/config_text.h"

namespace drun::cli {

struct HostGroup {
  std::string name;                // "gpu"
  std::vector<std::string> hosts;  // parts of a -H list
  std::string file;                // ConfigFile::name
  int line = 0;
};

// The key `hosts` as a table: a group for each of its keys. The value of a group is a text, a list, or a table with the
// key `hosts`.
struct HostTable {
  std::vector<HostGroup> groups;
  std::optional<ConfigEntry> chosen;  // the group `default`, which counts without -H, as the entry `hosts`
};

// Errors are Errc::kUsage and name the file, the line and the group.
Result<HostTable> read_host_table(const ConfigEntry& table, const std::string& file);

// The names of the groups in a -H list: of "@gpu,a:2" "gpu".
std::vector<std::string> groups_in(const std::vector<std::string>& list);

// The list with the hosts of each group in the place of "@NAME". An unknown group is an error with the subject "-H"; a
// fault in a group's hosts names its file.
Result<std::vector<std::string>> expand_groups(const std::vector<std::string>& list,
                                               const std::vector<HostGroup>& groups);

}  // namespace drun::cli
