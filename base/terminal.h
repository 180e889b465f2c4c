// Properties of a descriptor that may be a terminal.
#pragma once

#include <optional>

namespace drun {

struct TerminalSize {
  int columns = 80, rows = 24;
  bool operator==(const TerminalSize& other) const { return columns == other.columns && rows == other.rows; }
};

// Nothing if `fd` is not a terminal, or one without a known size.
std::optional<TerminalSize> terminal_size(int fd);
// Sets the size of a terminal through either of its ends. If it changes, the foreground process group gets SIGWINCH.
void set_terminal_size(int fd, TerminalSize size);
// True for a terminal on which the cursor can be moved: $TERM is set and not "dumb".
bool can_move_cursor(int fd);

// True for a terminal, unless NO_COLOR (https://no-color.org) or TERM=dumb is set.
bool wants_color(int fd);
// True if both are the same file, pipe or terminal.
bool is_same_file(int a, int b);

}  // namespace drun
