#include "launcher/output/worker_window.h"

#include <unistd.h>

#include <algorithm>

namespace drun::launcher {

namespace {
constexpr int kMinColumns = 20;  // a progress bar needs at least this many
}

TerminalSize worker_window(std::optional<TerminalSize> ours, std::size_t tag_columns) {
  if (!ours) return {};
  TerminalSize out = *ours;
  out.columns = std::max(out.columns - static_cast<int>(tag_columns), std::min(out.columns, kMinColumns));
  return out;
}

std::optional<TerminalSize> own_terminal_size() {
  const auto out = terminal_size(STDOUT_FILENO);
  return out ? out : terminal_size(STDERR_FILENO);
}

}  // namespace drun::launcher
