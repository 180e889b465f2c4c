#include "launcher/run/collective_progress.h"

#include <algorithm>

#include "recorder/words.h"

namespace drun::launcher {

namespace {

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return static_cast<double>(static_cast<std::int64_t>(to_ns - from_ns)) * 1e-9;
}

bool same_call(const std::vector<control::RecordedCall>& a, const std::vector<control::RecordedCall>& b) {
  if (a.empty() || b.empty()) return a.empty() == b.empty();
  return a.front().started_ns == b.front().started_ns && a.front().seq == b.front().seq;
}

// The call that a rank was in when its end came: it goes on, or that end broke it off.
const control::RecordedCall* interrupted(const control::RankActivity& activity) {
  if (!activity.open.empty()) return &activity.open.front();
  if (!activity.last.empty() && activity.last.front().status != 0) return &activity.last.front();
  return nullptr;
}

}  // namespace

std::string call_text(const control::RecordedCall& call) {
  return recorder::call_text(call.kind, call.comm, call.seq, call.root, call.name);
}

std::optional<LastCall> last_call(const control::RankActivity& activity) {
  const bool is_open = !activity.open.empty();
  if (!is_open && activity.last.empty()) return std::nullopt;
  const auto& call = is_open ? activity.open.front() : activity.last.front();
  LastCall out;
  out.text = call_text(call);
  out.operation = recorder::kind_text(call.kind);
  out.name = call.name;
  out.comm = call.comm;
  out.seq = call.seq;
  out.ended = !is_open;
  out.status = call.status;
  out.seconds = std::max(0.0, seconds_between(is_open ? call.started_ns : call.ended_ns, activity.time_ns));
  return out;
}

void CollectiveProgress::take(const control::Activity& message, Deadline now) {
  seen_.resize(table_.size());
  for (const auto& activity : message.ranks) {
    if (activity.rank >= seen_.size()) continue;
    Seen& seen = seen_[activity.rank];
    const auto& before = seen.activity;
    const bool same = before && before->n_begun == activity.n_begun && same_call(before->open, activity.open);
    if (!same) {
      const auto last = last_call(activity);
      seen.changed = now;
      seen.age_s = last ? last->seconds : 0;
    }
    seen.activity = activity;
  }
}

std::vector<RankProgress> CollectiveProgress::ranks() const {
  std::vector<RankProgress> out;
  for (const auto& entry : table_) {
    RankProgress progress;
    progress.rank = entry.rank;
    progress.host = table_.host_name(entry.rank);
    progress.pid = entry.pid;
    progress.over = entry.exited;
    if (static_cast<std::size_t>(entry.rank) < seen_.size()) {
      const Seen& seen = seen_[static_cast<std::size_t>(entry.rank)];
      progress.activity = seen.activity;
      progress.changed = seen.changed;
      progress.age_s = seen.age_s;
    }
    out.push_back(std::move(progress));
  }
  return out;
}

void CollectiveProgress::add_to(FirstFailure& failure) const {
  const std::vector<RankProgress> ranks = this->ranks();
  const auto is_first = [&](const RankProgress& rank) {
    return std::any_of(failure.first.begin(), failure.first.end(),
                       [&](const JobFailure& f) { return f.rank == rank.rank || (f.rank < 0 && f.host == rank.host); });
  };
  std::int64_t latest_ns = 0;
  for (auto& f : failure.first) {
    latest_ns = std::max(latest_ns, f.when.latest_ns);
    if (f.rank < 0 || f.rank >= static_cast<int>(ranks.size())) continue;
    const auto& activity = ranks[static_cast<std::size_t>(f.rank)].activity;
    if (activity) f.last_call = last_call(*activity);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (is_first(ranks[i]) || !ranks[i].activity) continue;
    const auto* call = interrupted(*ranks[i].activity);
    if (call == nullptr) continue;
    // A call that began after the failure is no call that the rank waited in.
    const auto since = hosts_[static_cast<std::size_t>(table_.at(ranks[i].rank).host)]->clock().ours(
        static_cast<std::int64_t>(call->started_ns));
    if (since && since->earliest_ns > latest_ns) continue;
    const std::string text = call_text(*call);
    // Those of the same number that share no rank are different communicators.
    auto same = std::find_if(failure.waited.begin(), failure.waited.end(),
                             [&](const Waited& w) { return w.text == text && w.group == call->group; });
    if (same == failure.waited.end()) same = failure.waited.insert(same, Waited{{}, text, call->group});
    same->ranks.push_back(ranks[i].rank);
  }
  std::stable_sort(failure.waited.begin(), failure.waited.end(),
                   [](const Waited& a, const Waited& b) { return a.ranks.size() > b.ranks.size(); });
}

}  // namespace drun::launcher
