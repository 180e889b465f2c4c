#include "cli/failure_box.h"

#include <algorithm>

#include "base/clean_text.h"
#include "base/error_id.h"
#include "base/exit_status.h"
#include "base/text.h"
#include "base/text_width.h"
#include "base/units.h"
#include "base/wording.h"
#include "launcher/plan/rank_list.h"
#include "launcher/report/same_failure.h"
#include "launcher/report/signal_text.h"

namespace drun::cli {

namespace {

using launcher::JobFailure;
using launcher::JobReport;

constexpr std::size_t kWidth = 78;     // of the rules and of drun's own text
constexpr std::size_t kMinWidth = 30;  // lines wrap on a narrower terminal
constexpr std::size_t kBefore = 4;     // columns of "  | "
constexpr std::size_t kMaxTexts = 4;
constexpr std::size_t kMaxFirst = 8;
constexpr std::size_t kMaxWaited = 4;
constexpr std::size_t kMaxHosts = 3;

class Box {
 public:
  explicit Box(const BoxStyle& style) : style_(style) {
    if (style_.columns > 0) width_ = std::clamp(style_.columns, kMinWidth, kWidth);
  }
  void top(const std::string& title) {
    const std::string left = style_.utf8 ? "╭─ " : "+- ";
    out_ += "  " + paint(left + title + " " + rule(width_ - 6 - title.size())) + "\n";
  }
  // Adds drun's own text.
  void line(const std::string& text) { add(text, width_); }
  // Adds text of other programs, as wide as the terminal, so that it can be copied.
  void quote(const std::string& text) { add("  " + text, std::max(style_.columns, width_)); }
  void bottom() { out_ += "  " + paint((style_.utf8 ? "╰" : "+") + rule(width_ - 3)) + "\n"; }
  std::string take() { return std::move(out_); }

 private:
  // Lines in a file aren't wrapped. Parts of every text come from workers and hosts.
  void add(const std::string& text, std::size_t width) {
    const std::string clean = clean_line(text);
    if (style_.columns == 0) return add_row(clean);
    for (const auto& row : wrap_text(clean, width - kBefore)) add_row(row);
  }
  void add_row(const std::string& text) {
    out_ += "  " + paint(style_.utf8 ? "│" : "|") + (text.empty() ? "" : " " + text) + "\n";
  }
  std::string rule(std::size_t n) const {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += style_.utf8 ? "─" : "-";
    return out;
  }
  std::string paint(const std::string& text) const { return style_.color ? "\033[31m" + text + "\033[0m" : text; }
  BoxStyle style_;
  std::size_t width_ = kWidth;
  std::string out_;
};

// One failure that one or more ranks had.
struct Group {
  std::vector<const JobFailure*> members;
  const JobFailure& shown() const { return *members.front(); }
  bool is_one() const { return members.size() == 1; }
  std::string its() const { return is_one() ? "its" : "their"; }
  std::string name() const;
  std::string sentence() const;
};

std::string ranks_words(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + launcher::ranks_text(ranks);
}

std::string Group::name() const {
  if (is_one()) return shown().name();
  std::vector<int> ranks;
  std::vector<std::string> hosts;
  for (const JobFailure* f : members) {
    ranks.push_back(f->rank);
    if (std::find(hosts.begin(), hosts.end(), f->host) == hosts.end()) hosts.push_back(f->host);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks_words(ranks) + " on " + list_some(hosts, kMaxHosts);
}

// "rank 3 on node7 (pid 812) was killed by SIGKILL (killed)", "ranks 0-3 on a, b exited with status 1"
std::string Group::sentence() const {
  if (is_one()) return shown().sentence();
  return name() + (starts_with(shown().what, launcher::kKilledBy) ? " were " : " ") + shown().what;
}

std::vector<Group> groups_of(const std::vector<JobFailure>& failures) {
  std::vector<Group> out;
  for (const auto& indices : launcher::same_failures(failures)) {
    Group group;
    for (const std::size_t i : indices) group.members.push_back(&failures[i]);
    out.push_back(std::move(group));
  }
  return out;
}

// "it had been in allreduce #12 'grad.17' for 3.1 s"
std::string last_call_words(const std::string& who, const launcher::LastCall& call) {
  if (!call.ended) return who + " had been in " + call.text + " for " + time_text(call.seconds);
  return (who == "it" ? "its last call, " : "the last call of " + who + ", ") + call.text + ", had " +
         (call.status == 0 ? "ended " : "failed ") + time_text(call.seconds) + " before";
}

// Ranks that were in the same call share a line, which shows the first rank's time.
void tell_last_calls(Box& box, const Group& group) {
  std::vector<std::pair<std::vector<int>, const launcher::LastCall*>> calls;
  for (const JobFailure* f : group.members) {
    if (!f->last_call) continue;
    const auto known = std::find_if(calls.begin(), calls.end(), [&](const auto& entry) {
      return entry.second->text == f->last_call->text && entry.second->ended == f->last_call->ended &&
             entry.second->status == f->last_call->status;
    });
    if (known == calls.end()) {
      calls.push_back({{f->rank}, &*f->last_call});
    } else {
      known->first.push_back(f->rank);
    }
  }
  for (auto& [ranks, call] : calls) {
    std::sort(ranks.begin(), ranks.end());
    const bool is_all = ranks.size() == group.members.size();
    box.line(last_call_words(group.is_one() ? "it" : is_all ? "all of them" : ranks_words(ranks), *call));
  }
}

void tell_last_lines(Box& box, const Group& group) {
  const JobFailure& f = group.shown();
  const bool are_same = std::all_of(group.members.begin(), group.members.end(), [&](const JobFailure* other) {
    return other == &f || launcher::has_same_lines(f, *other);
  });
  const auto lines = are_same ? f.last_lines : launcher::telling_lines(f);
  if (lines.empty()) {
    box.line((group.is_one() ? "it" : "they") + std::string(" wrote nothing"));
    return;
  }
  const std::string what = lines.size() == 1 ? "line" : std::to_string(lines.size()) + " lines";
  const std::string whose = group.is_one() ? "" : " (the same except rank, pid and host), of " + f.name();
  box.line(group.its() + " last " + what + whose + ":");
  for (const auto& line : lines) box.quote(line);
}

void describe(Box& box, const Group& group, const JobReport& report) {
  const JobFailure& f = group.shown();
  tell_last_calls(box, group);
  if (!f.out_of_memory.empty()) box.line("out of memory: " + f.out_of_memory);
  for (const auto& line : f.details) box.line(line);
  if (!f.own_error.empty()) {
    box.line(group.its() + (group.is_one() ? " error file says:" : " error files say:"));
    for (const auto line : split(f.own_error, '\n')) box.quote(std::string(line));
  }
  if (!f.complaint.empty()) box.line(group.its() + " libdrun says: " + f.complaint);
  // The output of a single worker is right above.
  if (report.ranks.size() > 1 && f.rank >= 0) tell_last_lines(box, group);
}

// Ranks that failed, or were about to, later.
void tell_others(Box& box, const Group& group, const launcher::FirstFailure& failure) {
  std::vector<int> ranks;
  for (const auto& other : failure.consequences) {
    if (launcher::is_same_failure(group.shown(), other)) ranks.push_back(other.rank);
  }
  const bool is_first = &group.shown() == &failure.first.front();
  if (is_first) ranks.insert(ranks.end(), failure.wrote_the_same.begin(), failure.wrote_the_same.end());
  std::sort(ranks.begin(), ranks.end());
  if (!ranks.empty()) box.line(ranks_words(ranks) + " failed in the same way");
}

std::string_view id_of(const JobFailure& failure) {
  if (!failure.out_of_memory.empty()) return error_id::kOutOfMemory;
  if (failure.rank < 0) return error_id::kHostLost;
  if (failure.exit_code < 0 && failure.signal == 0) {
    switch (failure.status) {  // it was not executed, or it ended the job itself
      case kExitNotFound:
        return error_id::kNotFound;
      case kExitNotExecutable:
        return error_id::kNotExecutable;
      case kExitTimeout:
        return error_id::kDeadline;
      default:
        return error_id::kPeerFailed;
    }
  }
  return failure.signal != 0 ? error_id::kWorkerSignal : error_id::kWorkerExit;
}

// The call in which most ranks waited, appended to the error line.
std::string while_others_waited(const launcher::FirstFailure& failure) {
  if (failure.first.size() != 1 || failure.waited.empty()) return {};
  return " while " + ranks_words(failure.waited.front().ranks) + " waited in " + failure.waited.front().text;
}

void tell_waited(Box& box, const launcher::FirstFailure& failure) {
  for (std::size_t i = 0; i < failure.waited.size() && i < kMaxWaited; ++i) {
    const auto& waited = failure.waited[i];
    box.line((i == 0 ? "while " : "and ") + ranks_words(waited.ranks) + " waited in " + waited.text);
  }
  if (failure.waited.size() > kMaxWaited) {
    box.line("and " + plural(failure.waited.size() - kMaxWaited, "other call") + " was waited in");
  }
}

}  // namespace

std::string format_failure(const JobReport& report, const BoxStyle& style) {
  if (!report.failure) return {};
  const auto& failure = *report.failure;
  const auto groups = groups_of(failure.first);
  const Group& group = groups.front();
  const JobFailure& first = group.shown();
  std::string out = "drun: " + std::string(style.color ? "\033[1;31merror\033[0m" : "error") + ": " +
                    clean_line(group.name() + ": " + first.what + while_others_waited(failure)) + " [" +
                    std::string(id_of(first)) + "]\n";
  const bool says_it_all = report.ranks.size() == 1 && first.out_of_memory.empty() && first.details.empty() &&
                           !first.last_call && first.own_error.empty() && first.complaint.empty();
  if (says_it_all) return out;
  Box box(style);
  box.top("first failure");
  const std::string when = time_text(std::max(0.0, report.failed_after_s)) + " after the start";
  const std::string near =
      "within " + time_text(2 * failure.uncertainty_s) + " of each other, which is as near as the clocks tell, " + when;
  if (groups.size() == 1) {
    box.line(group.sentence() + ", " + (group.is_one() ? when : near));
    tell_waited(box, failure);
    describe(box, group, report);
    tell_others(box, group, failure);
  } else {
    box.line(near + ":");
    tell_waited(box, failure);
    for (std::size_t i = 0; i < groups.size() && i < kMaxFirst; ++i) {
      box.line(groups[i].sentence());
      describe(box, groups[i], report);
      tell_others(box, groups[i], failure);
    }
    if (groups.size() > kMaxFirst) box.line("and " + std::to_string(groups.size() - kMaxFirst) + " more");
  }
  for (std::size_t i = 0; i < failure.said.size() && i < kMaxTexts; ++i) {
    const auto& said = failure.said[i];
    box.line(ranks_words(said.ranks) + " said: " + said.text);
  }
  if (failure.said.size() > kMaxTexts) {
    box.line("and " + plural(failure.said.size() - kMaxTexts, "other rank") + " said something else");
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
