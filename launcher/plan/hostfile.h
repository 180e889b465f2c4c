// Hostfiles of Open MPI (`slots=`, `max_slots=`, `port=`, `user@`), MPICH (`host:n`) and DeepSpeed (`host slots=n`);
// comments with #, blank lines, `node[01-16] slots=8`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/host.h"

namespace drun::launcher {

// Pure. Errors name file:line:column.
Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& file);
// Reads and parses. A file that can't be read is Errc::kUsage.
Result<std::vector<Host>> read_hostfile(const std::string& file);

}  // namespace drun::launcher
