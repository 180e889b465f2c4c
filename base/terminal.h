// What a descriptor that people may look at is like.
#pragma once

namespace drun {

// Colours are welcome: a terminal, and neither NO_COLOR (https://no-color.org) nor TERM=dumb says otherwise.
bool wants_color(int fd);
// Both are the same file, pipe or terminal.
bool is_same_file(int a, int b);

}  // namespace drun
