#include "launcher/output/output_tag.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "base/text_width.h"

namespace drun::launcher {

namespace {

constexpr std::size_t kTimeColumns = 13;  // "09:30:00.123 "

// Red is for errors.
constexpr std::array kColors = {"36", "32", "33", "35", "34", "96", "92", "93", "95", "94"};

std::string painted(const std::string& text, int host_index) {
  const char* const color = kColors[static_cast<std::size_t>(host_index) % kColors.size()];
  return std::string("\033[") + color + "m" + text + "\033[0m ";
}

}  // namespace

OutputTags::OutputTags(TagStyle style, bool timestamp, const std::vector<RankLabel>& ranks)
    : style_(style), timestamp_(timestamp), texts_(ranks.size()) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Texts& t = texts_[rank];
    if (style_ == TagStyle::kNone) {
      t.continued = t.colored_continued = timestamp_ ? "+ " : "";
      continue;
    }
    const std::string& host = ranks[rank].host;
    const std::string name = (style_ == TagStyle::kHost ? host + ":" : "") + std::to_string(rank);
    t.plain = "[" + name + "] ";
    t.continued = "[" + name + "+] ";
    t.colored = painted("[" + name + "]", ranks[rank].host_index);
    t.colored_continued = painted("[" + name + "+]", ranks[rank].host_index);
    width_ = std::max(width_, text_width(t.plain));
  }
  if (timestamp_) width_ += kTimeColumns;
}

void OutputTags::print_time(std::uint64_t time_ns) {
  const std::uint64_t ms = time_ns / 1000000;
  if (ms == shown_ms_) return;
  shown_ms_ = ms;
  const auto second = static_cast<time_t>(ms / 1000);
  tm parts{};
  ::localtime_r(&second, &parts);
  char text[48];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d ", parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(ms % 1000));
  time_ = text;
}

std::string_view OutputTags::of(int rank, std::uint64_t time_ns, bool is_continued, bool color) {
  const Texts& t = texts_[static_cast<std::size_t>(rank)];
  const std::string& name =
      color ? (is_continued ? t.colored_continued : t.colored) : (is_continued ? t.continued : t.plain);
  if (!timestamp_) return name;
  print_time(time_ns);
  out_.assign(time_).append(name);
  return out_;
}

}  // namespace drun::launcher
