// Turning the bytes of many ranks into lines of one terminal. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace drun::launcher {

// Collects one stream's bytes into displayed lines: `\n`, or a `\r` that no `\n` follows, ends one.
class LineAssembler {
 public:
  static constexpr std::size_t kLimit = 64u << 10;  // a longer line is shown in pieces of at most this size

  // Calls `sink(std::string_view)` for each whole line with its end, and for each piece of an overlong one; pieces are
  // cut between UTF-8 characters. Only lines that arrive in parts are copied.
  template <typename Sink>
  void push(std::string_view bytes, Sink&& sink) {
    while (!rest_.empty() && !bytes.empty()) {
      const std::size_t n = next_of_rest(bytes);
      if (n == 0) continue;
      sink(std::string_view(rest_).substr(0, n));
      drop_from_rest(n);
      // A piece leaves the line's end behind when its length is the limit's multiple.
      for (std::size_t left = piece_length(rest_); left > 0; left = piece_length(rest_)) {
        sink(std::string_view(rest_).substr(0, left));
        drop_from_rest(left);
      }
    }
    for (std::size_t n = piece_length(bytes); n > 0; n = piece_length(bytes)) {
      sink(bytes.substr(0, n));
      bytes.remove_prefix(n);
    }
    rest_.append(bytes);
  }
  // What is there of an unfinished line.
  std::string take_rest() { return std::exchange(rest_, std::string()); }
  bool has_rest() const { return !rest_.empty(); }

 private:
  static std::size_t line_length(std::string_view bytes);   // with its end; 0 = no end yet
  static std::size_t piece_length(std::string_view bytes);  // the next line, or a piece of it; 0 = not enough yet
  // Moves bytes into the rest until there is a line or a piece; its length, or 0.
  std::size_t next_of_rest(std::string_view& bytes);
  void drop_from_rest(std::size_t n);

  std::string rest_;
};

// One output descriptor shared by many streams: every line starts with its tag, and a line that was shown unfinished is
// continued if nothing came in between, else broken off with a newline.
class TaggedOutput {
 public:
  // `owner` names the stream (unique), `piece` is a line, an end of one, or a part.
  void put(int owner, std::string_view tag, std::string_view piece);
  // A newline if the output stands in an unfinished line of `owner`.
  void close_line(int owner);
  bool stands_in_line_of(int owner) const { return open_owner_ == owner; }
  const std::string& bytes() const { return out_; }
  void clear() { out_.clear(); }

 private:
  std::string out_;
  int open_owner_ = -1;  // whose unfinished line the output ends with
};

}  // namespace drun::launcher
