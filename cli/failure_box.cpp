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
constexpr std::size_t kMostWaited = 4;

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

std::string ranks_words(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + launcher::ranks_text(ranks);
}

// "it had been in allreduce #12 'grad.17' for 3.1 s"
std::string last_call_words(const launcher::LastCall& call) {
  if (!call.ended) return "it had been in " + call.text + " for " + time_text(call.seconds);
  return "its last call, " + call.text + ", had " + (call.status == 0 ? "ended " : "failed ") +
         time_text(call.seconds) + " before";
}

void describe(Box& box, const JobFailure& f, const JobReport& report) {
  if (f.last_call) box.line(last_call_words(*f.last_call));
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

// The call in which most waited, in one line with the error.
std::string while_others_waited(const launcher::FirstFailure& failure) {
  if (failure.first.size() != 1 || failure.waited.empty()) return {};
  return " while " + ranks_words(failure.waited.front().ranks) + " waited in " + failure.waited.front().text;
}

void tell_waited(Box& box, const launcher::FirstFailure& failure) {
  for (std::size_t i = 0; i < failure.waited.size() && i < kMostWaited; ++i) {
    const auto& waited = failure.waited[i];
    box.line((i == 0 ? "while " : "and ") + ranks_words(waited.ranks) + " waited in " + waited.text);
  }
  if (failure.waited.size() > kMostWaited) {
    box.line("and " + plural(failure.waited.size() - kMostWaited, "other call") + " was waited in");
  }
}

}  // namespace

std::string format_failure(const JobReport& report, const BoxStyle& style) {
  if (!report.failure) return {};
  const auto& failure = *report.failure;
  const JobFailure& first = failure.first.front();
  std::string out = "drun: " + std::string(style.color ? "\033[1;31merror\033[0m" : "error") + ": " + first.name() +
                    ": " + first.what + while_others_waited(failure) + "\n";
  const bool says_it_all = report.ranks.size() == 1 && first.out_of_memory.empty() && first.details.empty() &&
                           !first.last_call && first.own_error.empty() && first.complaint.empty();
  if (says_it_all) return out;
  Box box(style);
  box.top("first failure");
  if (failure.first.size() == 1) {
    box.line(first.name() + " " + first.what + ", " + time_text(std::max(0.0, report.failed_after_s)) +
             " after the start");
    tell_waited(box, failure);
    describe(box, first, report);
  } else {
    box.line("within " + time_text(2 * failure.uncertainty_s) +
             " of each other, which is as near as the clocks tell, " + time_text(std::max(0.0, report.failed_after_s)) +
             " after the start:");
    tell_waited(box, failure);
    for (std::size_t i = 0; i < failure.first.size() && i < kMostFirst; ++i) {
      box.line(failure.first[i].name() + " " + failure.first[i].what);
      describe(box, failure.first[i], report);
    }
    if (failure.first.size() > kMostFirst)
      box.line("and " + std::to_string(failure.first.size() - kMostFirst) + " more");
  }
  for (std::size_t i = 0; i < failure.said.size() && i < kMostSaid; ++i) {
    const auto& said = failure.said[i];
    box.line(ranks_words(said.ranks) + " said: " + said.text);
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
