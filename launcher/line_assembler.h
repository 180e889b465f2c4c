// Turning the bytes of many ranks into lines of one terminal. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace drun::launcher {

// Collects one stream's bytes into displayed lines: `\n`, or a `\r` that no `\n` follows, ends one.
class LineAssembler {
 public:
  static constexpr std::size_t kLimit = 64u << 10;  // a longer line is shown in pieces of this size

  void push(std::string_view bytes);
  // The next whole line with its end, or a piece of kLimit bytes of an overlong one; empty if there is none.
  std::string next();
  // What is there of an unfinished line.
  std::string take_rest();
  bool has_rest() const { return start_ < pending_.size(); }

 private:
  std::string pending_;
  std::size_t start_ = 0;
};

// One output descriptor shared by many streams: every line starts with its tag, and a line that was shown unfinished is
// continued if nothing came in between, else broken off with a newline.
class TaggedOutput {
 public:
  // `owner` names the stream (unique), `piece` is a line, an end of one, or a part.
  void put(int owner, std::string_view tag, std::string_view piece);
  std::string take() { return std::exchange(out_, std::string()); }
  bool empty() const { return out_.empty(); }
  std::size_t size() const { return out_.size(); }

 private:
  std::string out_;
  int open_owner_ = -1;  // whose unfinished line the output ends with
};

}  // namespace drun::launcher
