#include "cli/config/config_sources.h"

#include "base/text.h"

namespace drun::cli {

std::string ConfigSources::summary() const { return files.empty() ? "" : "options from " + join(files, ", "); }

std::string ConfigSources::hosts_note() const {
  return hosts_file.empty() ? "" : "the hosts are those of " + hosts_file;
}

}  // namespace drun::cli
