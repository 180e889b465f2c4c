#include "launcher/run/stall_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "launcher/plan/rank_list.h"
#include "recorder/layout.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxLines = 8;   // about missing ranks
constexpr std::size_t kMaxStalls = 8;  // reported at once
constexpr std::size_t kMaxRasLines = 60;
// Bounds of the interval at which the agents are asked, which is a tenth of the limit.
constexpr auto kOftenest = milliseconds(100), kSeldomest = milliseconds(5000);

bool is_pair(const control::RecordedCall& call) {
  return call.kind == recorder::kFirstPairKind || call.kind == recorder::kFirstPairKind + 1;
}

const control::RecordedCall* open_call(const RankProgress& rank) {
  return !rank.over && rank.activity && !rank.activity->open.empty() ? &rank.activity->open.front() : nullptr;
}

std::string id_of(const control::RecordedCall& call, int rank) {
  std::string id = std::to_string(call.comm) + "/" + std::to_string(call.group) + "/" + std::to_string(call.seq);
  if (is_pair(call))
    id += "/" + std::to_string(call.kind) + "/" + std::to_string(rank) + "/" + std::to_string(call.root);
  return id;
}

// The snapshots are a second apart.
std::string whole_seconds_text(double seconds) { return time_text(std::floor(seconds)); }

// Time since the rank's latest change, on a clock that stood still while drun was stopped.
double age_s(const RankProgress& rank, Deadline now) {
  return rank.age_s + std::max(0.0, std::chrono::duration<double>(now - rank.changed).count());
}

std::string name_of(const RankProgress& rank) {
  std::string out = "rank " + std::to_string(rank.rank) + " on " + rank.host;
  if (rank.pid > 0) out += " (pid " + std::to_string(rank.pid) + ")";
  return out;
}

std::string what_it_does(const RankProgress& rank, Deadline now) {
  if (rank.over) return "it has ended";
  if (!rank.activity) return "nothing is known of it: it has not called drun_init, or its libdrun has no recorder";
  if (const auto* open = open_call(rank))
    return "it has been in " + call_text(*open) + " for " + whole_seconds_text(age_s(rank, now));
  if (rank.activity->last.empty()) return "it has called nothing";
  const auto& last = rank.activity->last.front();
  return "its last call was " + call_text(last) + ", which " + (last.status == 0 ? "ended " : "failed ") +
         whole_seconds_text(age_s(rank, now)) + " ago";
}

std::string ranks_have(const std::vector<int>& ranks) {
  return ranks.size() == 1 ? "rank " + ranks_text(ranks) + " has " : "ranks " + ranks_text(ranks) + " have ";
}

// True if a collective waits for this rank. drun knows only the members of the communicator of all ranks; in another
// one a rank counts if it was last seen in an earlier call of the same communicator.
bool is_missing(const RankProgress& rank, const control::RecordedCall& call) {
  if (call.comm == 0) return !rank.activity || rank.activity->world_seq < call.seq;
  if (!rank.activity) return false;
  const auto earlier = [&](const control::RecordedCall& c) {
    return c.comm == call.comm && c.group == call.group && !is_pair(c) && c.seq < call.seq;
  };
  return std::any_of(rank.activity->open.begin(), rank.activity->open.end(), earlier) ||
         std::any_of(rank.activity->last.begin(), rank.activity->last.end(), earlier);
}

class Lines {
 public:
  void add(const std::string& line) { text_ += (text_.empty() ? "" : "\n") + line; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string details_of(const std::vector<RankProgress>& ranks, const control::RecordedCall& call,
                       const std::vector<int>& waiting, Deadline now) {
  Lines lines;
  double longest = 0;
  for (const int rank : waiting) longest = std::max(longest, age_s(ranks[static_cast<std::size_t>(rank)], now));
  lines.add(ranks_have(waiting) + "waited in it for " + whole_seconds_text(longest));
  if (is_pair(call)) {
    const auto other = static_cast<std::size_t>(call.root);
    if (call.root >= 0 && other < ranks.size()) {
      lines.add(name_of(ranks[other]) + ": " + what_it_does(ranks[other], now));
    }
    return lines.take();
  }
  std::vector<int> through;
  std::size_t n_missing = 0;
  for (const auto& rank : ranks) {
    if (std::find(waiting.begin(), waiting.end(), rank.rank) != waiting.end()) continue;
    if (is_missing(rank, call)) {
      if (++n_missing <= kMaxLines) {
        lines.add(name_of(rank) + " has not called " + call_text(call) + "; " + what_it_does(rank, now));
      }
    } else if (call.comm == 0) {
      through.push_back(rank.rank);
    }
  }
  if (n_missing > kMaxLines) lines.add("nor have " + plural(n_missing - kMaxLines, "other rank"));
  if (!through.empty()) lines.add(ranks_have(through) + "done " + (through.size() == 1 ? "its" : "their") + " part");
  if (n_missing == 0 && call.comm == 0)
    lines.add("all ranks have called it: it is slow, or a connection or a rank hangs");
  return lines.take();
}

}  // namespace

std::vector<Stall> find_stalls(const std::vector<RankProgress>& ranks, Deadline now, milliseconds limit) {
  struct Group {
    const control::RecordedCall* call = nullptr;
    std::vector<int> waiting;
    bool stalls = false;
  };
  std::map<std::string, Group> groups;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> oldest;  // seq, by communicator
  for (const auto& rank : ranks) {
    const auto* call = open_call(rank);
    if (call == nullptr) continue;
    auto& group = groups[id_of(*call, rank.rank)];
    group.call = call;
    group.waiting.push_back(rank.rank);
    group.stalls = group.stalls || now - rank.changed >= limit;
    if (is_pair(*call)) continue;
    const auto known = oldest.emplace(std::pair(call->comm, call->group), call->seq).first;
    known->second = std::min(known->second, call->seq);
  }
  std::vector<Stall> out;
  for (const auto& [id, group] : groups) {
    // Ranks that are ahead wait for those that are behind, so only the oldest call is a stall.
    if (!group.stalls || (!is_pair(*group.call) && oldest[{group.call->comm, group.call->group}] != group.call->seq))
      continue;
    Stall stall;
    stall.id = id;
    stall.call = call_text(*group.call);
    stall.waiting = group.waiting;
    stall.details = details_of(ranks, *group.call, group.waiting, now);
    out.push_back(std::move(stall));
  }
  return out;
}

std::string ras_words(const std::string& host, std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string out = "NCCL on " + host + " says:";
  std::size_t n_lines = 0;
  for (const auto line : split(text, '\n')) {
    if (++n_lines <= kMaxRasLines) out += "\n  " + std::string(line);
  }
  if (n_lines > kMaxRasLines) out += "\n  and " + plural(n_lines - kMaxRasLines, "more line");
  return out;
}

Task<void> StallReporter::watch(std::vector<AgentChannel*> hosts, milliseconds limit) {
  const auto every = std::clamp(limit / 10, kOftenest, kSeldomest);
  for (;;) {
    const bool stopped = co_await stopped_.wait_until(Clock::now() + every);
    if (stopped || supervisor_.stopping()) break;
    // NCCL on any host knows of all ranks; only ranks on GPUs have an NCCL that answers.
    if (poll(limit) && !hosts.empty()) hosts.front()->send(control::Type::kAskRas, {});
    for (AgentChannel* host : hosts) host->send(control::Type::kAskActivity, {});
  }
}

void StallReporter::take_ras(const std::string& host, const std::string& text) {
  if (!stopped_.is_set() && !supervisor_.stopping()) reporter_.warning(ras_words(host, text));
}

bool StallReporter::poll(milliseconds limit) {
  const Deadline now = Clock::now();
  const auto& ranks = board_.ranks();
  for (auto told = reported_.begin(); told != reported_.end();) {
    const auto& stall = told->second.stall;
    const auto is_in_it = [&](int rank) {
      const auto* call = open_call(ranks[static_cast<std::size_t>(rank)]);
      return call != nullptr && id_of(*call, rank) == stall.id;
    };
    if (std::any_of(stall.waiting.begin(), stall.waiting.end(), is_in_it)) {
      ++told;
      continue;
    }
    // A failed call reports its own error.
    const bool went_well = std::any_of(stall.waiting.begin(), stall.waiting.end(), [&](int rank) {
      const auto& progress = ranks[static_cast<std::size_t>(rank)];
      return open_call(progress) != nullptr ||
             (progress.activity && !progress.activity->last.empty() && progress.activity->last.front().status == 0);
    });
    if (went_well) {
      const double seconds = std::chrono::duration<double>(now - told->second.since + limit).count();
      reporter_.note(stall.call + " went on after " + whole_seconds_text(seconds));
    }
    told = reported_.erase(told);
  }
  std::size_t n_told = 0, n_more = 0;
  for (auto& stall : find_stalls(ranks, now, limit)) {
    if (reported_.contains(stall.id)) continue;
    if (++n_told <= kMaxStalls) {
      std::string text =
          "no progress for " + whole_seconds_text(std::chrono::duration<double>(limit).count()) + " in " + stall.call;
      for (const auto line : split(stall.details, '\n')) text += "\n  " + std::string(line);
      reporter_.warning(text);
    } else {
      ++n_more;
    }
    reported_[stall.id] = Reported{stall, now};
  }
  if (n_more > 0) reporter_.warning("no progress in " + plural(n_more, "other call"));
  return n_told > 0;
}

}  // namespace drun::launcher
