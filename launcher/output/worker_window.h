// How large the terminals of the workers are, with --pty: what a worker fills with text must fit on drun's terminal
// behind its tag.
#pragma once

#include <cstddef>
#include <optional>

#include "base/terminal.h"

namespace drun::launcher {

// Pure. `ours`: drun's terminal; without one there are 80 columns and 24 rows, whatever the tag.
TerminalSize worker_window(std::optional<TerminalSize> ours, std::size_t tag_columns);

// That of stdout, else of stderr: one of them shows what the workers write.
std::optional<TerminalSize> own_terminal_size();

}  // namespace drun::launcher
