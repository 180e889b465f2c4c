// One stream's latest lines as a terminal would show them: applies \r, \b and upward moves of the cursor. So several
// streams can share a terminal without writing into each other's lines. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

// Keeps only the colors among escape sequences. Sequences that move the cursor or clear act on the stream's own rows,
// as far as progress bars need it; the rest (titles, the alternate screen, modes of the terminal) is dropped.
class TerminalLines {
 public:
  static constexpr std::size_t kLimit = 64u << 10;  // a longer line is passed on in parts
  static constexpr std::size_t kMaxRows = 8;        // rows that a stream can rewrite: nested bars

  struct Line {
    std::string_view text;  // without its end; colors are reset at its end
    bool is_ended = true;   // false: the stream is still inside the line
    bool is_continued = false;
    bool replaces_part = false;  // the part that was passed on before is obsolete
  };
  using Sink = std::function<void(const Line&)>;

  // Calls `sink` for each line that can't change any more, and for each part of an overlong line.
  void push(std::string_view bytes, const Sink& sink);
  // Passes on the unfinished line as a part, unless it is a bar.
  void give_unfinished(const Sink& sink);
  // Passes on everything that is left: the stream has ended.
  void end(const Sink& sink);

  // Rows that may be rewritten: progress bars. Empty rows are left out.
  std::vector<std::string> bars() const;
  // True if the cursor is in a line that is no bar.
  bool is_inside_line() const { return !rows_[at_].is_bar && (!rows_[at_].text.empty() || (at_ == 0 && gave_part_)); }

 private:
  struct Row {
    std::string text;
    bool is_bar = false;        // the cursor returned to its start
    bool is_rewritten = false;  // and its text was replaced
    bool was_wiped = false;     // by spaces before this text, which is a message in place of a bar
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
  bool at_start_ = true;        // the cursor is before the row's text, which the next text replaces
  bool gave_part_ = false;      // of the first row
  bool replaces_part_ = false;  // that part was overwritten
  bool went_up_ = false;        // by the latest sequence
  bool moves_up_ = false;       // the stream has moved up: its finished bars may still be rewritten
  std::string escape_;          // the unfinished sequence
  std::string style_;           // the active colors
};

}  // namespace drun::launcher
