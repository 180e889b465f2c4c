// What the workers' bytes look like on drun's stdout and stderr: whole lines with their tags, and on a terminal
// progress bars below them. Pure; used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/messages.h"
#include "launcher/output/line_assembler.h"
#include "launcher/output/output_tag.h"
#include "launcher/output/output_terminal.h"
#include "launcher/output/terminal_lines.h"

namespace drun::launcher {

// Where the display goes.
struct Screen {
  enum class Kind { kFile, kTerminal };  // a pipe is a file here
  bool is_one = false;                   // stdout and stderr are the same file or terminal: their lines must not mix
  bool color_out = false, color_err = false;
  Kind out = Kind::kFile, err = Kind::kFile;
  // Of a terminal, the rows that progress bars may take; 0: they are shown when they are over.
  std::size_t bars_out = 0, bars_err = 0;
};

class OutputDisplay {
 public:
  using Stream = control::Stream;

  // Most rows that progress bars take, and how many where something else, as `grep` behind a pipe, may write there,
  // too.
  static constexpr std::size_t kMostBars = 8, kMostBarsBesideOthers = 1;

  // One rank without a tag keeps its bytes as they are; without tags, but several ranks, whole lines are kept together.
  OutputDisplay(OutputTags tags, std::size_t n_ranks, Screen screen);

  // No bytes: what there is of an unfinished line is shown.
  void put(int rank, Stream stream, std::uint64_t time_ns, std::string_view bytes);
  void end(int rank, Stream stream);    // shows what is left of an unfinished line
  void put_own(std::string_view text);  // drun's own words
  void show_all_unfinished();           // nothing more will come

  // Terminals: their sizes, before what is shown next; somebody else has written there.
  void resize(TerminalSize out, TerminalSize err);
  void forget_screen();
  // Brings back bars where lines were written over them; with `changed_too`, also shows those that have changed.
  void draw(bool changed_too);
  bool has_changed_bars() const;  // that draw() has not shown
  // drun's own words would have to begin with a newline.
  bool own_words_break_a_line() const;

  std::size_t tag_width() const { return tags_.width(); }

  // What is to be written; clear() afterwards. With one screen all is in out().
  const std::string& out() const { return bytes_of(out_); }
  const std::string& err() const { return bytes_of(err_); }
  void clear();
  std::size_t size() const { return out().size() + err().size(); }

 private:
  struct Source {
    LineAssembler lines;
    TerminalLines rows;           // in the place of `lines`, if it goes to a terminal
    std::uint64_t time_ns = 0;    // of the unfinished line's first bytes
    bool is_inside_line = false;  // what was shown last is no whole line
  };
  struct Target {
    TaggedOutput file;
    std::optional<TerminalOutput> terminal;
  };
  static std::size_t index(int rank, Stream stream) {
    return 2 * static_cast<std::size_t>(rank) + (stream == Stream::kStderr ? 1 : 0);
  }
  static Stream stream_of(std::size_t source) { return source % 2 == 1 ? Stream::kStderr : Stream::kStdout; }
  static const std::string& bytes_of(const Target& target) {
    return target.terminal ? target.terminal->bytes() : target.file.bytes();
  }
  Target& target(Stream stream) { return stream == Stream::kStderr && !screen_.is_one ? err_ : out_; }
  std::string_view tag_of(std::size_t source, std::uint64_t time_ns, bool is_continued);
  void show(int rank, Stream stream, std::uint64_t time_ns, std::string_view piece);
  void show_rest(std::size_t source, bool is_over);
  void put_on(TerminalOutput& terminal, std::size_t source, std::uint64_t time_ns, std::string_view bytes);
  void show_line(TerminalOutput& terminal, std::size_t source, std::uint64_t time_ns, const TerminalLines::Line& line);
  void end_on(TerminalOutput& terminal, std::size_t source);

  OutputTags tags_;
  Screen screen_;
  bool is_raw_;
  std::vector<Source> sources_;  // by index()
  Target out_, err_;
};

}  // namespace drun::launcher
