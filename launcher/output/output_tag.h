// The tag before each displayed line: the time and the rank. Pure, except for the time zone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

enum class TagStyle { kNone, kRank, kHost };  // "", "[3] ", "[gpu1:3] "

struct RankLabel {
  std::string host;    // as the user named it
  int host_index = 0;  // determines the color
};

class OutputTags {
 public:
  OutputTags(TagStyle style, bool timestamp, const std::vector<RankLabel>& ranks);
  // Width in columns of the widest tag, including the time, of a line that is not continued.
  std::size_t width() const { return width_; }
  bool empty() const { return style_ == TagStyle::kNone && !timestamp_; }

  // The tag of a line of `rank` that its agent read at `time_ns` (CLOCK_REALTIME): "09:30:00.123 [3] ", in local time.
  // A line that continues after other lines came in between has a plus: "09:30:00.123 [3+] ", so that a reader can put
  // it together again. Valid until the next call.
  std::string_view of(int rank, std::uint64_t time_ns, bool is_continued, bool color);

 private:
  struct Texts {
    std::string plain, continued, colored, colored_continued;
  };
  void print_time(std::uint64_t time_ns);

  TagStyle style_;
  bool timestamp_;
  std::vector<Texts> texts_;  // by rank
  std::size_t width_ = 0;
  std::uint64_t shown_ms_ = UINT64_MAX;
  std::string time_;  // of shown_ms_
  std::string out_;
};

}  // namespace drun::launcher
