// One stream's latest lines as a terminal would show them: what \r, \b and moving the cursor up do to them. So several
// streams can share a terminal without writing into each other's lines. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

// Of escape sequences only colors are kept. Those that move the cursor or clear act on the stream's own rows, as far as
// progress bars need it; the rest (titles, the alternate screen, modes of the terminal) is left out.
class TerminalLines {
 public:
  static constexpr std::size_t kLimit = 64u << 10;  // a longer line is given out in parts
  static constexpr std::size_t kMostRows = 8;       // that a stream can rewrite: bars inside of bars

  struct Line {
    std::string_view text;  // without its end; colors are reset at its end
    bool is_ended = true;   // else the stream stands inside of it
    bool is_continued = false;
    bool replaces_part = false;  // the part that was given out before is not true any more
  };
  using Sink = std::function<void(const Line&)>;

  // Calls `sink` for each line that nothing can change any more, and for each part of an overlong one.
  void push(std::string_view bytes, const Sink& sink);
  // The unfinished line, if it is no bar: given out as a part.
  void give_unfinished(const Sink& sink);
  // Nothing more will come.
  void end(const Sink& sink);

  // Rows that may be rewritten: progress bars. Empty ones are left out.
  std::vector<std::string> bars() const;
  // It stands in a line that is no bar.
  bool is_inside_line() const { return !rows_[at_].is_bar && (!rows_[at_].text.empty() || (at_ == 0 && gave_part_)); }

 private:
  struct Row {
    std::string text;
    bool is_bar = false;        // it was returned to
    bool is_rewritten = false;  // and what stood there was replaced
    bool was_wiped = false;     // by spaces, for a message in the place of a bar
  };

  void print(std::string_view text, const Sink& sink);
  void control(char c, const Sink& sink);
  void escape(char c);
  void finish_escape();
  void color(const std::string& sequence);
  void new_line(const Sink& sink);
  void give_rows(std::size_t n, const Sink& sink);
  void give(const Row& row, bool is_ended, const Sink& sink);

  std::vector<Row> rows_ = std::vector<Row>(1);
  std::size_t at_ = 0;          // the row of the cursor
  bool at_start_ = true;        // the cursor stands before the row's text, which the next text replaces
  bool gave_part_ = false;      // of the first row
  bool replaces_part_ = false;  // that part was overwritten
  bool went_up_ = false;        // just now
  bool moves_up_ = false;       // the stream has done so: its finished bars may be rewritten yet
  std::string escape_;          // of a sequence that is not over
  std::string style_;           // the colors that are on
};

}  // namespace drun::launcher
