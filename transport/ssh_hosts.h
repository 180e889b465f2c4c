// The hosts that ssh knows by name, for completions. What can't be read is skipped: no error helps here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::transport {

// The names after Host in `file` and the files that it includes, in order, without patterns. `home`: for "~/" in
// Include. `include_folder`: for relative Include patterns.
std::vector<std::string> config_hosts(const std::string& file, const std::string& home,
                                      const std::string& include_folder);
// The names in a known_hosts file that are neither hashed nor patterns, without their ports. Pure.
std::vector<std::string> known_hosts_hosts(std::string_view text);

// Both, from the user's and the system's files, each name once. `config_file`: as -F, "none" = no ssh config.
std::vector<std::string> ssh_hosts(const std::string& config_file);

}  // namespace drun::transport
