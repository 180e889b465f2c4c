// What the workers' bytes look like on drun's stdout and stderr: whole lines with their tags. Pure; used by one thread
// at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "launcher/control/messages.h"
#include "launcher/line_assembler.h"
#include "launcher/output_tag.h"

namespace drun::launcher {

// Where the display goes.
struct Screen {
  bool is_one = false;  // stdout and stderr are the same file or terminal: their lines must not mix
  bool color_out = false, color_err = false;
};

class OutputDisplay {
 public:
  using Stream = control::Stream;

  // One rank without a tag keeps its bytes as they are; without tags, but several ranks, whole lines are kept together.
  OutputDisplay(OutputTags tags, std::size_t n_ranks, Screen screen);

  // No bytes: what there is of an unfinished line is shown.
  void put(int rank, Stream stream, std::uint64_t time_ns, std::string_view bytes);
  void end(int rank, Stream stream);    // shows what is left of an unfinished line
  void put_own(std::string_view text);  // drun's own words
  void show_all_unfinished();

  // What is to be written; clear() afterwards. With one screen all is in out().
  const std::string& out() const { return out_.bytes(); }
  const std::string& err() const { return err_.bytes(); }
  void clear();
  std::size_t size() const { return out_.bytes().size() + err_.bytes().size(); }

 private:
  struct Source {
    LineAssembler lines;
    std::uint64_t time_ns = 0;    // of the unfinished line's first bytes
    bool is_inside_line = false;  // what was shown last is no whole line
  };
  static std::size_t index(int rank, Stream stream) {
    return 2 * static_cast<std::size_t>(rank) + (stream == Stream::kStderr ? 1 : 0);
  }
  TaggedOutput& target(Stream stream) { return stream == Stream::kStderr && !screen_.is_one ? err_ : out_; }
  void show(int rank, Stream stream, std::uint64_t time_ns, std::string_view piece);
  void show_rest(std::size_t source);

  OutputTags tags_;
  Screen screen_;
  bool is_raw_;
  std::vector<Source> sources_;  // by index()
  TaggedOutput out_, err_;
};

}  // namespace drun::launcher
