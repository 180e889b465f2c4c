#include "cli/failure_box.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "launcher/progress.h"
#include "launcher/rank_list.h"

namespace drun::cli {

namespace {

using launcher::JobFailure;
using launcher::JobReport;

constexpr std::size_t kWidth = 78;
constexpr std::size_t kMostSaid = 4;
constexpr std::size_t kMostFirst = 8;

// Also of what is too short for seconds_text().
std::string time_text(double seconds) {
  if (seconds >= 1) return launcher::seconds_text(std::chrono::duration<double>(seconds));
  char text[32];
  std::snprintf(text, sizeof text, seconds < 0.01 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
  return text;
}

class Box {
 public:
  explicit Box(const BoxStyle& style) : style_(style) {}
  void top(const std::string& title) {
    const std::string left = style_.utf8 ? "╭─ " : "+- ";
    out_ += "  " + paint(left + title + " " + rule(kWidth - 6 - title.size())) + "\n";
  }
  void line(const std::string& text) {
    out_ += "  " + paint(style_.utf8 ? "│" : "|") + (text.empty() ? "" : " " + text) + "\n";
  }
  void bottom() { out_ += "  " + paint((style_.utf8 ? "╰" : "+") + rule(kWidth - 3)) + "\n"; }
  std::string take() { return std::move(out_); }

 private:
  std::string rule(std::size_t n) const {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += style_.utf8 ? "─" : "-";
    return out;
  }
  std::string paint(const std::string& text) const { return style_.color ? "\033[31m" + text + "\033[0m" : text; }
  BoxStyle style_;
  std::string out_;
};

void describe(Box& box, const JobFailure& f, const JobReport& report) {
  if (!f.out_of_memory.empty()) box.line("out of memory: " + f.out_of_memory);
  for (const auto& line : f.details) box.line(line);
  if (!f.own_error.empty()) {
    box.line("its error file says:");
    for (const auto line : split(f.own_error, '\n')) box.line("  " + std::string(line));
  }
  if (!f.complaint.empty()) box.line("its libdrun says: " + f.complaint);
  if (report.ranks.size() == 1 || f.rank < 0) return;  // one worker: its output stands right above
  if (f.last_lines.empty()) {
    box.line("it wrote nothing");
    return;
  }
  box.line("its last " + (f.last_lines.size() == 1 ? "line" : std::to_string(f.last_lines.size()) + " lines") + ":");
  for (const auto& line : f.last_lines) box.line("  " + line);
}

}  // namespace

std::string format_failure(const JobReport& report, const BoxStyle& style) {
  if (!report.failure) return {};
  const auto& failure = *report.failure;
  const JobFailure& first = failure.first.front();
  std::string out = "drun: " + std::string(style.color ? "\033[1;31merror\033[0m" : "error") + ": " + first.name() +
                    ": " + first.what + "\n";
  const bool says_it_all = report.ranks.size() == 1 && first.out_of_memory.empty() && first.details.empty() &&
                           first.own_error.empty() && first.complaint.empty();
  if (says_it_all) return out;
  Box box(style);
  box.top("first failure");
  if (failure.first.size() == 1) {
    box.line(first.name() + " " + first.what + ", " + time_text(std::max(0.0, report.failed_after_s)) +
             " after the start");
    describe(box, first, report);
  } else {
    box.line("within " + time_text(2 * failure.uncertainty_s) +
             " of each other, which is as near as the clocks tell, " + time_text(std::max(0.0, report.failed_after_s)) +
             " after the start:");
    for (std::size_t i = 0; i < failure.first.size() && i < kMostFirst; ++i) {
      box.line(failure.first[i].name() + " " + failure.first[i].what);
      describe(box, failure.first[i], report);
    }
    if (failure.first.size() > kMostFirst)
      box.line("and " + std::to_string(failure.first.size() - kMostFirst) + " more");
  }
  for (std::size_t i = 0; i < failure.said.size() && i < kMostSaid; ++i) {
    const auto& said = failure.said[i];
    box.line((said.ranks.size() == 1 ? "rank " : "ranks ") + launcher::ranks_text(said.ranks) + " said: " + said.text);
  }
  if (failure.said.size() > kMostSaid) {
    box.line("and " + plural(failure.said.size() - kMostSaid, "other rank") + " said something else");
  }
  if (report.n_ended_by_drun > 0) {
    box.line(
        "drun ended the " +
        (report.n_ended_by_drun == 1 ? "other worker" : std::to_string(report.n_ended_by_drun) + " other workers") +
        " because of it");
  }
  box.bottom();
  return out + box.take();
}

}  // namespace drun::cli
