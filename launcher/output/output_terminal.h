// One terminal shared by many streams: lines scroll by, and the progress bars below them are redrawn in place. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal.h"

namespace drun::launcher {

// States: the cursor is at the start of a line, or inside an unfinished line of one stream, or, with `n_drawn_` rows of
// bars on the screen, behind the last one. Lines are written over the bars; draw() draws the bars again.
class TerminalOutput {
 public:
  // `max_bars`: maximum number of rows of bars; 0: a terminal on which nothing can be redrawn.
  explicit TerminalOutput(std::size_t max_bars) : max_bars_(max_bars) {}

  // Sets the size for the next drawing.
  void resize(TerminalSize size);
  // `text` has no line end. `owner` names the stream (unique).
  void put(int owner, std::string_view tag, std::string_view text, bool is_ended);
  // Removes the owner's unfinished line, which is obsolete, if the cursor is still in it; breaks it off if it can't be
  // erased.
  void take_back(int owner);
  // Sets the stream's bars, with their tags; an empty list removes them.
  void set_bars(int owner, std::vector<std::string> bars);
  // Another program has written to the terminal and left the cursor at the start of a line.
  void forget();

  // True if bars have changed since the last draw().
  bool is_stale() const { return is_stale_; }
  // True if lines were written over the bars.
  bool is_lifted() const { return n_drawn_ == 0 && !bars_.empty() && max_bars_ > 0; }
  void draw();

  bool stands_in_line() const { return open_owner_ >= 0; }
  bool stands_in_line_of(int owner) const { return open_owner_ == owner; }
  const std::string& bytes() const { return out_; }
  void clear() { out_.clear(); }

 private:
  void go_to_bars();
  void lift();
  void break_line();
  std::vector<std::string> shown_bars() const;

  std::size_t max_bars_;
  TerminalSize size_;
  std::map<int, std::vector<std::string>> bars_;  // by owner
  bool is_stale_ = false;
  std::size_t n_drawn_ = 0;
  int open_owner_ = -1;
  std::size_t open_columns_ = 0;  // of the unfinished line
  std::string out_;
};

}  // namespace drun::launcher
