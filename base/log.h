// What developers read, on stderr with -v or in --log-file. What users must read goes through cli/printer.h.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace drun::log {

enum class Level { kOff, kInfo, kDebug };

// Until this is called nothing is logged. `file` empty: stderr.
Result<void> start(Level level, const std::string& file);
// Lines for stderr go to `write` instead, while workers write to the same terminal. An empty `write`: to stderr again.
// Both from the thread that logs; a program that uses this logs on one thread only.
void write_through(std::function<void(const std::string& text)> write);
void info(const std::string& text);
void debug(const std::string& text);

}  // namespace drun::log
