// What developers read, on stderr with -v or in --log-file. What users must read goes through cli/printer.h.
#pragma once

#include <string>

#include "base/error.h"

namespace drun::log {

enum class Level { kOff, kInfo, kDebug };

// Until this is called nothing is logged. `file` empty: stderr.
Result<void> start(Level level, const std::string& file);
void info(const std::string& text);
void debug(const std::string& text);

}  // namespace drun::log
