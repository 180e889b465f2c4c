// Size of the workers' terminals, with --pty: the lines of a worker must fit on drun's terminal behind its tag.
#pragma once

#include <cstddef>
#include <optional>

#include "base/terminal.h"

namespace drun::launcher {

// Pure. `ours`: size of drun's terminal; without one the result is 80 columns and 24 rows, whatever the tag.
TerminalSize worker_window(std::optional<TerminalSize> ours, std::size_t tag_columns);

// Size of the terminal of stdout, else of stderr: one of them shows the workers' output.
std::optional<TerminalSize> own_terminal_size();

}  // namespace drun::launcher
