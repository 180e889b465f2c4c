#include "base/terminal.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace drun {

std::optional<TerminalSize> terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row};
}

void set_terminal_size(int fd, TerminalSize size) {
  winsize window{};
  window.ws_col = static_cast<unsigned short>(size.columns);
  window.ws_row = static_cast<unsigned short>(size.rows);
  ::ioctl(fd, TIOCSWINSZ, &window);
}

bool can_move_cursor(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

bool wants_color(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return false;
  return ::isatty(fd) == 1;
}

bool is_same_file(int a, int b) {
  struct stat first {
  }, second{};
  if (::fstat(a, &first) != 0 || ::fstat(b, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

}  // namespace drun
