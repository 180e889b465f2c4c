// What a descriptor that people may look at is like.
#pragma once

#include <optional>

namespace drun {

struct TerminalSize {
  int columns = 80, rows = 24;
  bool operator==(const TerminalSize& other) const { return columns == other.columns && rows == other.rows; }
};

// Nothing: no terminal, or one that does not know its size.
std::optional<TerminalSize> terminal_size(int fd);
// Sets the size of a terminal, by one of its ends. If it changes, the programs in its foreground get SIGWINCH.
void set_terminal_size(int fd, TerminalSize size);
// A terminal on which the cursor can be moved: $TERM is set and not "dumb".
bool can_move_cursor(int fd);

// Colours are welcome: a terminal, and neither NO_COLOR (https://no-color.org) nor TERM=dumb says otherwise.
bool wants_color(int fd);
// Both are the same file, pipe or terminal.
bool is_same_file(int a, int b);

}  // namespace drun
