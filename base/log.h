// The log for developers, on stderr with -v or in --log-file. Messages for users go through cli/printer.h.
#pragma once

#include <functional>
#include <string>

namespace drun::log {

enum class Level { kOff, kInfo, kDebug };

using Write = std::function<void(const std::string& text)>;

enum class Place { kStderr, kFile };

// Starts logging by `write`, which must not block: before, and after stop(), calls of info() and debug() do nothing.
void start(Level level, Write write, Place place = Place::kStderr);
void stop();
// Sends lines for stderr to `write` instead, while workers write to the same terminal. An empty `write` ends that. Must
// be called on the thread that logs; a program that calls it must log on one thread only.
void write_through(Write write);
void info(const std::string& text);
void debug(const std::string& text);

}  // namespace drun::log
