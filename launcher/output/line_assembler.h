// Turns the bytes of many ranks into lines of one terminal. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace drun::launcher {

// Splits one stream's bytes into displayed lines. A line ends with `\n`, or with a `\r` that no `\n` follows. A `\r`
// with nothing before it, with which progress bars begin, belongs to the line that follows.
class LineAssembler {
 public:
  static constexpr std::size_t kLimit = 64u << 10;  // a longer line is shown in pieces of at most this size

  // Calls `sink(std::string_view)` for each whole line with its end, and for each piece of an overlong line; pieces are
  // cut between UTF-8 characters. Only lines that arrive in parts are copied.
  template <typename Sink>
  void push(std::string_view bytes, Sink&& sink) {
    while (!rest_.empty() && !bytes.empty()) {
      const std::size_t n = next_of_rest(bytes);
      if (n == 0) continue;
      sink(std::string_view(rest_).substr(0, n));
      note_end(rest_[n - 1]);
      drop_from_rest(n);
      // If the length of a line is a multiple of the limit, its end is left over after the last piece.
      for (std::size_t left = piece_length(rest_); left > 0; left = piece_length(rest_)) {
        sink(std::string_view(rest_).substr(0, left));
        note_end(rest_[left - 1]);
        drop_from_rest(left);
      }
    }
    for (std::size_t n = piece_length(bytes); n > 0; n = piece_length(bytes)) {
      sink(bytes.substr(0, n));
      note_end(bytes[n - 1]);
      bytes.remove_prefix(n);
    }
    rest_.append(bytes);
  }
  // Takes the unfinished line so far; carriage returns alone are kept for the next line.
  std::string take_rest() {
    if (rest_.find_first_not_of('\r') == std::string::npos) return {};
    is_inside_ = true;
    return std::exchange(rest_, std::string());
  }
  // Takes carriage returns alone too: the stream has ended.
  std::string take_all() { return std::exchange(rest_, std::string()); }
  bool has_rest() const { return !rest_.empty(); }

 private:
  static std::size_t line_length(std::string_view bytes, std::size_t first);  // with its end; 0 = no end yet
  std::size_t piece_length(std::string_view bytes) const;  // the next line, or a piece of it; 0 = not enough yet
  void note_end(char last) { is_inside_ = last != '\n' && last != '\r'; }
  // Moves bytes into the rest until it contains a line or a piece; returns its length, or 0.
  std::size_t next_of_rest(std::string_view& bytes);
  void drop_from_rest(std::size_t n);

  std::string rest_;
  bool is_inside_ = false;  // the beginning of the line was already passed on
};

// One output descriptor shared by many streams. Every line starts with its tag. A line that was shown unfinished is
// continued if nothing came in between, and otherwise broken off with a newline.
class TaggedOutput {
 public:
  // `owner` names the stream (unique), `piece` is a line, the end of one, or a part.
  void put(int owner, std::string_view tag, std::string_view piece);
  // Adds bytes of the only stream unchanged. Text of other owners begins a line of its own.
  void put_raw(int owner, std::string_view bytes);
  // Adds a newline if the output ends in an unfinished line of `owner`.
  void close_line(int owner);
  bool stands_in_line() const { return open_owner_ >= 0; }
  const std::string& bytes() const { return out_; }
  void clear() { out_.clear(); }

 private:
  std::string out_;
  int open_owner_ = -1;  // owner of the unfinished line with which the output ends
};

}  // namespace drun::launcher
