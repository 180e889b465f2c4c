#include "launcher/output/output_terminal.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_width.h"

namespace drun::launcher {

void TerminalOutput::resize(TerminalSize size) {
  if (size == size_) return;
  size_ = size;
  is_stale_ = is_stale_ || !bars_.empty();
}

// Moves the cursor to the start of the first bar.
void TerminalOutput::go_to_bars() {
  out_ += '\r';
  if (n_drawn_ > 1) out_ += "\033[" + std::to_string(n_drawn_ - 1) + "A";
}

void TerminalOutput::lift() {
  if (n_drawn_ == 0) return;
  go_to_bars();
  out_ += "\033[J";
  n_drawn_ = 0;
}

void TerminalOutput::break_line() {
  if (open_owner_ >= 0) out_ += '\n';
  open_owner_ = -1;
}

void TerminalOutput::put(int owner, std::string_view tag, std::string_view text, bool is_ended) {
  lift();
  if (open_owner_ != owner) {
    break_line();
    out_ += tag;
    open_columns_ = text_width(tag);
  }
  out_ += text;
  if (is_ended) {
    out_ += '\n';
    open_owner_ = -1;
  } else {
    open_columns_ += text_width(text);
    open_owner_ = owner;
  }
}

void TerminalOutput::take_back(int owner) {
  if (open_owner_ != owner) return;
  const bool is_one_row = open_columns_ < static_cast<std::size_t>(size_.columns);
  if (!is_one_row || max_bars_ == 0) return break_line();
  out_ += "\r\033[K";
  open_owner_ = -1;
}

void TerminalOutput::set_bars(int owner, std::vector<std::string> bars) {
  const auto known = bars_.find(owner);
  if (bars.empty()) {
    if (known == bars_.end()) return;
    bars_.erase(known);
  } else if (known == bars_.end()) {
    bars_.emplace(owner, std::move(bars));
  } else if (known->second == bars) {
    return;
  } else {
    known->second = std::move(bars);
  }
  is_stale_ = true;
}

void TerminalOutput::forget() {
  n_drawn_ = 0;
  open_owner_ = -1;
}

// Shows at most as many bars as half of the screen holds. If there are more, each stream shows only its last bar; the
// first streams are shown.
std::vector<std::string> TerminalOutput::shown_bars() const {
  const auto half = static_cast<std::size_t>(std::max(size_.rows / 2, 1));
  const std::size_t most = std::min(max_bars_, half);
  std::vector<std::string> all, lasts;
  for (const auto& [owner, bars] : bars_) {
    all.insert(all.end(), bars.begin(), bars.end());
    lasts.push_back(bars.back());
  }
  if (all.size() <= most) return all;
  if (lasts.size() <= most || most == 0) return most == 0 ? std::vector<std::string>() : lasts;
  const std::size_t n_shown = most > 1 ? most - 1 : 1;
  const std::size_t n_left = lasts.size() - n_shown;
  lasts.resize(n_shown);
  if (most > 1) lasts.push_back("... and " + plural(n_left, "more progress bar"));
  return lasts;
}

void TerminalOutput::draw() {
  is_stale_ = false;
  const auto rows = shown_bars();
  if (rows.empty()) return lift();
  if (n_drawn_ > 0) {
    go_to_bars();
  } else {
    break_line();
  }
  const auto columns = static_cast<std::size_t>(std::max(size_.columns, 1));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) out_ += '\n';
    // Clears before the text, not behind it: a full row leaves the cursor on its last character, which would be erased.
    out_ += i + 1 < rows.size() ? "\033[K" : "\033[J";
    out_ += cut_to_width(rows[i], columns);
  }
  n_drawn_ = rows.size();
}

}  // namespace drun::launcher
