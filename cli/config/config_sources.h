// The drun.toml files that a call of drun has read, for its messages.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace drun::cli {

struct ConfigSources {
  std::vector<std::string> files;             // nearest first
  std::string hosts_file;                     // the file of a working directory that chose the hosts; "" = none did
  std::map<std::string, std::string> places;  // of options that files gave: "-x" -> "drun.toml:3: 'x'"

  // "options from drun.toml"; "" without a file.
  std::string summary() const;
  // For the user, who may not know that a file came with the working directory; "" without `hosts_file`.
  std::string hosts_note() const;
};

}  // namespace drun::cli
