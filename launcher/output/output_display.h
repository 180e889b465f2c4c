// Formats the workers' bytes for drun's stdout and stderr: whole lines with their tags, and on a terminal progress bars
// below them. Pure; used by one thread at a time.
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

// The files or terminals to which the display is written.
struct Screen {
  enum class Kind { kFile, kTerminal };  // a pipe is a file here
  bool is_one = false;                   // stdout and stderr are the same file or terminal: their lines must not mix
  bool merges_stderr = false;            // the workers' stderr goes to stdout; drun's own text does not
  bool color_out = false, color_err = false;
  Kind out = Kind::kFile, err = Kind::kFile;
  // Rows of a terminal that progress bars may take; 0: bars are shown when they are finished.
  std::size_t bars_out = 0, bars_err = 0;
};

class OutputDisplay {
 public:
  using Stream = control::Stream;

  // Maximum number of rows for progress bars, and the maximum on a terminal to which another program may write too,
  // such as `grep` behind a pipe.
  static constexpr std::size_t kMaxBars = 8, kMaxBarsBesideOthers = 1;

  // If there is one rank without a tag, its bytes are kept as they are. Several ranks without tags are kept in whole
  // lines.
  OutputDisplay(OutputTags tags, std::size_t n_ranks, Screen screen);

  // Empty `bytes`: shows the unfinished line so far.
  void put(int rank, Stream stream, std::uint64_t time_ns, std::string_view bytes);
  void end(int rank, Stream stream);    // shows what is left of an unfinished line
  void put_own(std::string_view text);  // drun's own text
  void show_all_unfinished();           // at the end, when all streams are over

  // For terminals: resize() sets the sizes for the next output; forget_screen() notes that another program has written
  // to them.
  void resize(TerminalSize out, TerminalSize err);
  void forget_screen();
  // Redraws bars that were removed to write lines; with `changed_too`, also shows bars that have changed.
  void draw(bool changed_too);
  bool has_changed_bars() const;  // changes that draw() has not shown
  // True if drun's own text has to begin with a newline.
  bool own_words_break_a_line() const;

  std::size_t tag_width() const { return tags_.width(); }

  // The bytes to write; call clear() afterwards. With one screen everything is in out().
  const std::string& out() const { return bytes_of(out_); }
  const std::string& err() const { return bytes_of(err_); }
  void clear();
  std::size_t size() const { return out().size() + err().size(); }

 private:
  struct Source {
    LineAssembler lines;
    TerminalLines rows;           // used instead of `lines` for a terminal
    std::uint64_t time_ns = 0;    // of the unfinished line's first bytes
    bool is_inside_line = false;  // the last piece shown did not end its line
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
  Target& target(Stream stream) { return stream == Stream::kStderr && !screen_.merges_stderr ? own_target() : out_; }
  Target& own_target() { return screen_.is_one ? out_ : err_; }
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
