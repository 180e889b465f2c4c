// The log for developers, on stderr with -v or in --log-file. Messages for users go through cli/printer.h.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace drun::log {

enum class Level { kOff, kInfo, kDebug };

using Write = std::function<void(const std::string& text)>;

// Starts logging; earlier calls of info() and debug() do nothing. `file` empty: stderr, by `to_stderr` if it is set.
Result<void> start(Level level, const std::string& file, Write to_stderr = nullptr);
// Sends lines for stderr to `write` instead, while workers write to the same terminal. An empty `write` restores
// stderr. Must be called on the thread that logs; a program that calls it must log on one thread only.
void write_through(Write write);
void info(const std::string& text);
void debug(const std::string& text);

}  // namespace drun::log
